//! Compiles the BPF programs in `bpf/` with clang, and embeds them in the crate.
//!
//! Without a suitable clang, the crate is built without them, and reports that at run time.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The source files of programs, and their object files. The headers next to the sources belong to them.
const SOURCES: [(&str, &str); 4] = [
    ("bpf/learning_switch.bpf.c", "learning_switch.o"),
    ("bpf/l3.bpf.c", "l3.o"),
    ("bpf/services.bpf.c", "services.o"),
    ("bpf/ring.bpf.c", "ring.o"),
];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(without_programs)");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    if let Err(reason) = compile() {
        println!("cargo::rustc-cfg=without_programs");
        println!("cargo::rustc-env=URTICA_WITHOUT_PROGRAMS={reason}");
        if is_wanted() {
            println!("cargo::warning=the kernel half is left out: {reason}");
        }
    }
}

/// Returns whether the programs must be built.
fn is_wanted() -> bool {
    std::env::var_os("CARGO_FEATURE_LIBBPF").is_some()
}

fn compile() -> Result<(), String> {
    if !is_wanted() {
        return Err(
            "the feature kernel-half is not enabled: build with --features kernel-half".into(),
        );
    }
    let headers = libbpf_headers()?;
    SOURCES
        .iter()
        .try_for_each(|(source, object)| compile_source(source, object, &headers))
}

fn compile_source(source: &str, object: &str, headers: &str) -> Result<(), String> {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let object = out_dir().join(object);
    let mut command = Command::new(&clang);
    command
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g"])
        .args([
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            "-Werror",
            "-std=gnu11",
        ])
        .arg(format!("-D__TARGET_ARCH_{}", target_arch()))
        .arg(format!("-I{headers}"));
    // Debian keeps headers for C programs in a folder per architecture, which clang does not search for a BPF target.
    for folder in ["x86_64-linux-gnu", "aarch64-linux-gnu"] {
        let include = Path::new("/usr/include").join(folder);
        if include.exists() {
            command.arg("-idirafter").arg(include);
        }
    }
    command.arg("-c").arg(source).arg("-o").arg(&object);
    let output = command
        .output()
        .map_err(|error| format!("{clang} cannot be run ({error})"))?;
    if output.status.success() {
        return Ok(());
    }
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    if is_our_fault(&output.stderr) {
        // The compiler works but refuses our source: this is a mistake of ours, and must not be ignored.
        panic!("{clang} refuses {source}; see above");
    }
    Err(format!("{clang} cannot compile for BPF"))
}

/// Returns whether the compiler's message is about our source rather than the compiler.
fn is_our_fault(stderr: &[u8]) -> bool {
    String::from_utf8_lossy(stderr).contains("bpf/")
}

/// Returns the folder where libbpf-sys has put libbpf's headers.
fn libbpf_headers() -> Result<String, String> {
    std::env::var("DEP_BPF_INCLUDE").map_err(|_| "libbpf's headers were not found".into())
}

fn target_arch() -> &'static str {
    match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("aarch64") => "arm64",
        _ => "x86",
    }
}

fn out_dir() -> PathBuf {
    std::env::var_os("OUT_DIR").expect("cargo sets it").into()
}
