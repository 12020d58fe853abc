//! The README tells the truth about the code beside it.

const README: &str = include_str!("../README.md");

#[test]
fn the_control_program_shown_is_the_example() {
    let example = include_str!("../examples/learning.rs");
    let (_about, program) = example
        .split_once("\n\n")
        .expect("a comment and then the program");
    assert!(README.contains(&format!("```rust\n{program}```")));
}

#[test]
fn the_first_screen_shows_the_page() {
    let mut first = README.lines().take(40);
    assert!(first.any(|line| line.starts_with("![") && line.contains("](docs/web-network.png)")));
}

#[test]
fn links_lead_to_files() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let links: Vec<&str> = README
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect();
    assert!(links.len() > 5, "{links:?}");
    for link in links {
        let file = link.split('#').next().unwrap_or(link);
        assert!(root.join(file).exists(), "{file} does not exist");
    }
}
