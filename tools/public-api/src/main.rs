//! Lists the public interface of every library of the workspace, one item per line, and compares it with the listing in
//! `public-api/`, so that no change of the interface goes unnoticed.
//!
//! `make public-api` compares; `make public-api-bless` records the current interface. Omits derived, automatic and blanket impls.
//! All features are enabled.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run(&env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!(
                "public-api: the public interface is not as recorded. If that is meant, run `make public-api-bless`, look at \
                 the difference, commit it, and say in CHANGELOG.md what a user has to change."
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("public-api: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns `true` if the interface is as recorded.
fn run(arguments: &[String]) -> Result<bool> {
    let bless = match arguments {
        [] => false,
        [argument] if argument == "--bless" => true,
        _ => return Err("expected no argument, or --bless".into()),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let listings = root.join("public-api");
    let libraries = libraries(&root)?;
    write_json(&root, &libraries)?;
    if bless {
        record(&root, &listings, &libraries)
    } else {
        compare(&root, &listings, &libraries)
    }
}

/// Returns the packages that are libraries: the one at the root, and those in `crates/` with a `lib.rs`, except for the Python
/// extension module, which has its own workspace.
fn libraries(root: &Path) -> Result<BTreeSet<String>> {
    let mut libraries = BTreeSet::from(["urtica".to_owned()]);
    for entry in fs::read_dir(root.join("crates"))? {
        let entry = entry?;
        if entry.file_name() != "python" && entry.path().join("src/lib.rs").is_file() {
            libraries.insert(format!("urtica-{}", entry.file_name().display()));
        }
    }
    Ok(libraries)
}

fn write_json(root: &Path, libraries: &BTreeSet<String>) -> Result<()> {
    let status = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .current_dir(root)
        .args(["doc", "--quiet", "--locked", "--no-deps", "--lib", "--all-features"])
        .args(libraries.iter().flat_map(|library| ["--package", library]))
        .env("RUSTDOC", Path::new(env!("CARGO_MANIFEST_DIR")).join("rustdoc"))
        .env("RUSTDOCFLAGS", "-Zunstable-options --output-format=json")
        .env("CARGO_TARGET_DIR", target(root))
        .status()?;
    if status.success() { Ok(()) } else { Err("cargo doc failed".into()) }
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn record(root: &Path, listings: &Path, libraries: &BTreeSet<String>) -> Result<bool> {
    let _ = fs::remove_dir_all(listings);
    fs::create_dir(listings)?;
    for library in libraries {
        fs::write(listings.join(format!("{library}.txt")), listing(root, library)?)?;
    }
    println!("public-api: recorded {} libraries", libraries.len());
    Ok(true)
}

fn compare(root: &Path, listings: &Path, libraries: &BTreeSet<String>) -> Result<bool> {
    let mut same = true;
    for library in libraries {
        let recorded = fs::read_to_string(listings.join(format!("{library}.txt"))).unwrap_or_default();
        same &= report(library, &recorded, &listing(root, library)?);
    }
    for entry in fs::read_dir(listings).into_iter().flatten() {
        let path = entry?.path();
        let library = path.file_stem().unwrap_or_default().display().to_string();
        if !libraries.contains(&library) {
            println!("public-api/{library}.txt: there is no such library");
            same = false;
        }
    }
    if same {
        println!("public-api: {} libraries, all as recorded", libraries.len());
    }
    Ok(same)
}

/// Returns the items, one per line, sorted.
fn listing(root: &Path, library: &str) -> Result<String> {
    let json = target(root).join("doc").join(format!("{}.json", library.replace('-', "_")));
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| format!("{library}: {error}; public-api in tools/public-api/Cargo.toml must fit the compiler"))?;
    let lines: BTreeSet<_> = api.items().map(|item| format!("{item}\n")).collect();
    Ok(lines.into_iter().collect())
}

/// Prints the added and removed items; returns `true` if there are none.
fn report(library: &str, recorded: &str, actual: &str) -> bool {
    let recorded: BTreeSet<_> = recorded.lines().collect();
    let actual: BTreeSet<_> = actual.lines().collect();
    if recorded == actual {
        return true;
    }
    println!("{library}:");
    for line in recorded.difference(&actual) {
        println!("  - {line}");
    }
    for line in actual.difference(&recorded) {
        println!("  + {line}");
    }
    false
}
