//! McNettle's example controllers (its section 4): they do what the paper says, and are as long as docs/apps.md says.

use urtica::state::{TVar, atomically};

#[expect(dead_code, reason = "an example has a `main`")]
#[path = "../examples/mcnettle/bandwidth.rs"]
mod bandwidth;

const GUIDE: &str = include_str!("../docs/apps.md");

/// Lines of code that say something, and all: without comments, blank lines and imports.
fn lengths(source: &str) -> (usize, usize) {
    let is_code =
        |line: &&str| !(line.is_empty() || line.starts_with("//") || line.starts_with("use "));
    let code: Vec<_> = source.lines().map(str::trim).filter(is_code).collect();
    let only_closes = |line: &&&str| line.chars().all(|letter| ")]};,".contains(letter));
    (
        code.len() - code.iter().filter(only_closes).count(),
        code.len(),
    )
}

/// The paper's figures show no `main`.
fn without_main(source: &str) -> String {
    let (before, main) = source.split_once("fn main").expect("a program");
    let (_, after) = main.split_once("\n}\n").expect("main ends");
    [before, after].concat()
}

/// Of routing, the paper shows one expression.
fn expression(source: &str) -> String {
    let computes = |line: &&str| line.contains("NextHops::new");
    source.lines().filter(computes).collect()
}

#[test]
fn the_guide_counts_their_lines_as_they_are() {
    let hello = include_str!("../examples/mcnettle/hello.rs");
    let local_learning = include_str!("../examples/mcnettle/local_learning.rs");
    let global_learning = include_str!("../examples/mcnettle/global_learning.rs");
    let routing = include_str!("../examples/mcnettle/routing.rs");
    let bandwidth = include_str!("../examples/mcnettle/bandwidth.rs");
    for (name, shown) in [
        ("hello", hello.to_owned()),
        ("local_learning", without_main(local_learning)),
        ("global_learning", without_main(global_learning)),
        ("routing", expression(routing)),
        ("bandwidth", without_main(bandwidth)),
    ] {
        let (saying, all) = lengths(&shown);
        let row = format!("| [{name}](../examples/mcnettle/{name}.rs) | {saying} | {all} |");
        assert!(GUIDE.contains(&row), "docs/apps.md should say: {row}");
    }
}

#[test]
fn bandwidth_is_reserved_on_all_links_or_on_none() {
    let path = [100, 40, 100].map(TVar::new);
    let left = || path.each_ref().map(TVar::load);
    let reserve = |amount| atomically(|tx| bandwidth::reserve_path(tx, &path, amount));
    assert!(reserve(30));
    assert_eq!(left(), [70, 10, 70]);
    assert!(!reserve(30), "the second link has not that much");
    assert_eq!(
        left(),
        [70, 10, 70],
        "the first gives back what it had granted"
    );
    assert!(reserve(10));
    assert_eq!(left(), [60, 0, 60]);
}
