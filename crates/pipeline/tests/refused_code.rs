//! Where the system allows no machine code, as SELinux without `execmem` and systemd's `MemoryDenyWriteExecute` do not.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::time::Duration;
use urtica_pipeline::{Backend, Burst, CompileConfig, Pipeline, PipelineConfig, Verdict};
use urtica_wire::{FlowMod, FlowModCommand, MacAddr, Port, PortNo};

/// Has the system refuse the calling thread all memory that code could run in (seccomp(2)).
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
    // The number is at the beginning of `seccomp_data`, the third argument's lower half at 32.
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
    // SAFETY: the program and its instructions are there during the call, which copies them.
    let is_done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) == 0
    };
    assert!(is_done, "{}", std::io::Error::last_os_error());
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
        let mut burst = Burst::new();
        for in_port in [1, 2] {
            assert!(burst.push(PortNo(in_port), &[0; 60]));
        }
        compiled.reader().process(&mut burst, Duration::ZERO);
        let verdicts: Vec<_> = burst.iter().map(|frame| frame.verdict()).collect();
        assert_eq!(verdicts, [2, 1].map(|port| Verdict::Output(PortNo(port))));
    };
    std::thread::spawn(in_jail).join().unwrap();
}

#[test]
fn elsewhere_they_are_machine_code() {
    let compiled = pipeline().compile(CompileConfig::default()).unwrap();
    assert_eq!(compiled.backend(), Backend::MachineCode);
}
