//! Tests on systems that allow no machine code, as with SELinux without `execmem` and systemd's `MemoryDenyWriteExecute`.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;
use urtica_pipeline::{
    Backend, Burst, CompileConfig, Pipeline, PipelineConfig, Reader, TemplateKind, Verdict,
};
use urtica_wire::{FlowMod, FlowModCommand, MacAddr, Port, PortNo};

/// Marks the child process, which gives up machine code permanently.
const IS_CHILD: &str = "URTICA_TEST_MDWE";

/// Makes the system refuse the calling thread all executable memory (seccomp(2)).
fn refuse_executable_memory() {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let jump = |test: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: (libc::BPF_JMP | test | libc::BPF_K) as u16,
        jt,
        jf,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let end = libc::BPF_RET | libc::BPF_K;
    // The number is at the start of `seccomp_data`, the lower half of the third argument at 32.
    let mut filter = [
        statement(load, 0),
        jump(libc::BPF_JEQ, libc::SYS_mprotect as u32, 0, 3),
        statement(load, 32),
        jump(libc::BPF_JSET, libc::PROT_EXEC as u32, 0, 1),
        statement(end, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(end, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: the program and its instructions are alive during the call, which copies them.
    let is_done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) == 0
    };
    assert!(is_done, "{}", io::Error::last_os_error());
}

fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    for number in [1, 2] {
        let mac = MacAddr::from_u64(number.into());
        pipeline.set_port(Port::new(PortNo(number), mac, "port"));
    }
    pipeline
}

fn add(pipeline: &mut Pipeline, text: &str) {
    let flow_mod = FlowMod::parse(FlowModCommand::Add, text).unwrap();
    let added = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
    added.unwrap();
}

#[test]
fn tables_are_compiled_for_the_interpreter() {
    let in_jail = || {
        refuse_executable_memory();
        let mut pipeline = pipeline();
        add(&mut pipeline, "in_port=1,actions=output:2");
        let compiled = pipeline.compile(CompileConfig::default()).unwrap();
        assert_eq!(compiled.backend(), Backend::Interpreter);
        add(&mut pipeline, "in_port=2,actions=output:1");
        assert_eq!(verdicts(&mut compiled.reader()), outputs([2, 1]));
        let explanation = pipeline.explain(false).unwrap();
        assert!(explanation.is_code_refused);
    };
    std::thread::spawn(in_jail).join().unwrap();
}

/// Returns the verdicts on a frame from port 1 and on one from port 2.
fn verdicts(reader: &mut Reader) -> Vec<Verdict> {
    let mut burst = Burst::new();
    for in_port in [1, 2] {
        assert!(burst.push(PortNo(in_port), &[0; 60]));
    }
    reader.process(&mut burst, Duration::ZERO);
    burst.iter().map(|frame| frame.verdict()).collect()
}

fn outputs(ports: [u32; 2]) -> [Verdict; 2] {
    ports.map(|port| Verdict::Output(PortNo(port)))
}

/// Compiles tables to machine code, calls `refuse`, and continues with changes that need more code.
fn goes_on_without_code(is_shared: bool, refuse: fn()) {
    let mut pipeline = pipeline();
    add(&mut pipeline, "in_port=1,actions=output:2");
    let config = CompileConfig {
        is_shared,
        ..CompileConfig::default()
    };
    let compiled = pipeline.compile(config).unwrap();
    compiled.set_misses_punt(false);
    let mut reader = compiled.reader();
    assert_eq!(compiled.backend(), Backend::MachineCode);
    let only_first = [Verdict::Output(PortNo(2)), Verdict::Drop];
    assert_eq!(verdicts(&mut reader), only_first);
    refuse();
    add(
        &mut pipeline,
        "in_port=2,actions=set_field:02:00:00:00:00:09->eth_src,output:1",
    );
    assert_eq!(compiled.backend(), Backend::Interpreter);
    assert_ne!(pipeline.template(0), Some(TemplateKind::PlainForm));
    let explanation = pipeline.explain(false).unwrap().to_string();
    assert!(
        explanation.contains("tables are interpreted: the system refused memory"),
        "{explanation}"
    );
    // The existing reader, and a new one of the first compiled form.
    for reader in [&mut reader, &mut compiled.reader()] {
        assert_eq!(verdicts(reader), outputs([2, 1]));
    }
    let counted: u64 = pipeline.tables()[0]
        .entries()
        .map(|entry| entry.counted().packets)
        .sum();
    assert_eq!(counted, 1 + 2 * 2, "what the first form counted is kept");
    // Misses are dropped as before.
    let delete = FlowMod::parse(FlowModCommand::Delete, "in_port=2").unwrap();
    pipeline
        .flow_mod(&delete, Duration::ZERO, &mut Vec::new())
        .unwrap();
    assert_eq!(verdicts(&mut reader), only_first);
}

#[test]
fn the_interpreter_continues_after_a_refusal() {
    for is_shared in [false, true] {
        let in_jail = move || goes_on_without_code(is_shared, refuse_executable_memory);
        std::thread::spawn(in_jail).join().unwrap();
    }
}

/// This needs its own process, since the change is permanent.
#[test]
fn the_interpreter_continues_after_a_refusal_by_mdwe() {
    if std::env::var_os(IS_CHILD).is_some() {
        return goes_on_without_code(false, || assert!(set_mdwe()));
    }
    if !knows_mdwe() {
        let skipped = "skipped: needs Linux 6.3 (PR_SET_MDWE)";
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{skipped}");
        // Not println!, which cargo hides for tests that pass.
        let _ = writeln!(io::stderr(), "{skipped}");
        return;
    }
    let test = "the_interpreter_continues_after_a_refusal_by_mdwe";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(IS_CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

/// Makes the system refuse the process everything that systemd's `MemoryDenyWriteExecute` refuses.
fn set_mdwe() -> bool {
    let refuse = libc::c_ulong::from(libc::PR_MDWE_REFUSE_EXEC_GAIN);
    let zero: libc::c_ulong = 0;
    // SAFETY: the arguments are no pointers.
    unsafe { libc::prctl(libc::PR_SET_MDWE, refuse, zero, zero, zero) == 0 }
}

/// Returns `true` if the kernel supports it.
fn knows_mdwe() -> bool {
    let zero: libc::c_ulong = 0;
    // SAFETY: the arguments are no pointers.
    unsafe { libc::prctl(libc::PR_GET_MDWE, zero, zero, zero, zero) >= 0 }
}

#[test]
fn tables_are_machine_code_otherwise() {
    let compiled = pipeline().compile(CompileConfig::default()).unwrap();
    assert_eq!(compiled.backend(), Backend::MachineCode);
}
