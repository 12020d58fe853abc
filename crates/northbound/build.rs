//! With the feature `web`, lists the files of the page that `make web` built, so that `src/web.rs` can include them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_WEB").is_none() {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    println!("cargo::rerun-if-changed={}", page.display());
    let listed = list(&page).and_then(|files| {
        let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
        fs::write(out.join("files.rs"), files)
    });
    if let Err(error) = listed {
        let page = page.display();
        println!(
            "cargo::error=the feature web needs the page in {page}, which cannot be read: {error}; type `make web` first, which needs Node"
        );
    }
}

/// Returns an expression that lists the files in a folder, each with its compressed form (`x.js.gz` for `x.js`).
fn list(page: &Path) -> io::Result<String> {
    let page = page.canonicalize()?;
    let mut files = String::from("&[\n");
    for (path, file) in files_of(&page)? {
        let compressed = PathBuf::from(format!("{}.gz", file.display()));
        if !compressed.is_file() {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(
            files,
            "File {{ path: {path:?}, plain: include_bytes!({file:?}), compressed: include_bytes!({compressed:?}) }},",
        );
    }
    files.push(']');
    Ok(files)
}

/// Returns the page's files, each as the path that a browser requests and the path of the file.
fn files_of(page: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut files = vec![("/".to_owned(), page.join("index.html"))];
    for entry in fs::read_dir(page.join("assets"))? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        files.push((format!("/assets/{name}"), file.clone()));
    }
    files.sort();
    Ok(files)
}
