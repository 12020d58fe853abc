//! The output of `urtica --version`.

use std::sync::LazyLock;
use urtica_offload::Kernel;

/// The version and the compiled features, which bug reports need.
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    [
        env!("CARGO_PKG_VERSION").to_owned(),
        "OpenFlow: 1.0, 1.3".to_owned(),
        format!("TLS: {}", if cfg!(feature = "tls") { "yes" } else { "no" }),
        format!("kernel half: {}", kernel_half()),
        format!("page: {}", page()),
        format!("switch: {}", machine_code()),
        format!(
            "built for {}-{}",
            std::env::consts::ARCH,
            std::env::consts::OS
        ),
    ]
    .join("\n")
});

fn kernel_half() -> String {
    match Kernel::not_built() {
        None => "yes".to_owned(),
        Some(reason) => format!("no, since {reason}"),
    }
}

fn page() -> &'static str {
    if cfg!(feature = "web") {
        "yes"
    } else {
        "no, since the feature web is not enabled: type `make web`, and build with --features web"
    }
}

fn machine_code() -> &'static str {
    if cfg!(target_arch = "x86_64") {
        "compiles to machine code"
    } else {
        "interprets compiled tables; machine code needs x86-64"
    }
}
