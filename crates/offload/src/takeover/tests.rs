//! All orders of a program's steps, of input and of deaths, in a model of the kernel in which each message has one byte.

use super::*;
use std::collections::HashSet;

/// A byte in the socket's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Byte {
    Passed,
    Straight,
}

/// The next step of the program's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    AttachStored,
    HandOverStored,
    HeldBack,
    LeftMap,
    LetIn,
    UnpassedStored,
}

/// The state that a program has in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Program {
    step: Step,
    is_attached: bool,
    is_in: bool,
    before: u64,
    read_aside: u64,
    read: u64,
    written: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct World {
    is_in: bool,
    is_owned_by_kernel: bool,
    is_held_back: bool,
    queue: Vec<Byte>,
    taken: u64,
    passed: u64,
    replied: u64,
    on_their_way: u64,
    written: u64,
    is_attached: bool,
    unpassed: u64,
    handed_over: u64,
    /// The bytes that programs have actually read and written.
    read_in_all: u64,
    written_in_all: u64,
    program: Option<Program>,
    arrivals_left: u8,
    writes_left: u8,
    deaths_left: u8,
}

impl World {
    fn new() -> Self {
        Self {
            arrivals_left: 4,
            writes_left: 2,
            deaths_left: 2,
            ..Self::default()
        }
    }

    /// Returns all possible next states.
    fn next(&self) -> Vec<Self> {
        let mut next = self.kernels();
        match self.program {
            Some(program) => next.extend(self.programs(program)),
            None => next.push(self.with(Self::start)),
        }
        next
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut world = self.clone();
        change(&mut world);
        world
    }

    fn kernels(&self) -> Vec<Self> {
        let mut next = Vec::new();
        if self.arrivals_left > 0 {
            let arrived = self.with(|world| world.arrivals_left -= 1);
            match self.is_in && !self.is_held_back {
                true => {
                    if self.is_owned_by_kernel {
                        next.push(arrived.with(|world| {
                            world.taken += 1;
                            world.replied += 1;
                            world.on_their_way += 1;
                        }));
                    }
                    next.push(arrived.with(Self::pass));
                }
                false => next.push(arrived.with(|world| world.queue.push(Byte::Straight))),
            }
        }
        if self.on_their_way > 0 {
            next.push(self.with(|world| {
                world.on_their_way -= 1;
                world.written += 1;
            }));
        }
        next
    }

    fn pass(&mut self) {
        self.is_owned_by_kernel = false;
        self.passed += 1;
        self.queue.push(Byte::Passed);
    }

    fn may_write(&self, program: &Program) -> bool {
        !program.is_attached || self.written >= program.written + self.replied
    }

    /// Makes the socket enter the map, and its queue be checked.
    fn enter(&mut self) {
        self.is_in = true;
        for byte in &mut self.queue {
            if *byte == Byte::Straight {
                *byte = Byte::Passed;
                self.passed += 1;
            }
        }
    }

    fn step(&self, program: Program, step: Step, change: impl FnOnce(&mut Self)) -> Self {
        self.with(|world| {
            change(world);
            world.program = Some(Program { step, ..program });
        })
    }

    fn programs(&self, program: Program) -> Vec<Self> {
        let mut next = match program.step {
            Step::Idle => self.begin(program),
            _ => vec![self.go_on(program)],
        };
        if self.deaths_left > 0 {
            next.push(self.with(|world| {
                world.deaths_left -= 1;
                world.program = None;
            }));
        }
        next
    }

    /// Returns the operations that an idle program may start.
    fn begin(&self, program: Program) -> Vec<Self> {
        if self.is_owned_by_kernel {
            return vec![self.with(|world| world.is_owned_by_kernel = false)];
        }
        let may_write = self.may_write(&program);
        let (is_empty, has_read_all) = (self.queue.is_empty(), self.passed == program.read);
        let mut next = Vec::new();
        if !is_empty {
            next.push(self.read(program));
        }
        if may_write && self.writes_left > 0 {
            let written = program.written + 1;
            next.push(
                self.step(Program { written, ..program }, Step::Idle, |world| {
                    world.writes_left -= 1;
                    world.written += 1;
                    world.written_in_all += 1;
                }),
            );
        }
        if !program.is_attached && is_empty {
            next.push(self.step(program, Step::AttachStored, |world| {
                world.unpassed = world.read_in_all;
                world.handed_over = world.written;
                world.is_attached = true;
            }));
        }
        if program.is_attached && program.is_in && may_write {
            next.push(self.step(program, Step::HandOverStored, |world| {
                world.handed_over = program.written;
            }));
            if has_read_all {
                next.push(self.step(program, Step::HeldBack, |world| world.is_held_back = true));
            }
        }
        if program.is_attached && !program.is_in && is_empty {
            next.push(self.step(program, Step::UnpassedStored, |world| {
                world.unpassed = program.before + program.read_aside;
            }));
        }
        next
    }

    fn read(&self, mut program: Program) -> Self {
        let byte = self.queue[0];
        let expected = match program.is_attached && program.is_in {
            true => Byte::Passed,
            false => Byte::Straight,
        };
        assert_eq!(byte, expected, "{self:?}");
        match program.is_in {
            true => program.read += 1,
            false => program.read_aside += 1,
        }
        self.step(program, Step::Idle, |world| {
            world.queue.remove(0);
            world.read_in_all += 1;
        })
    }

    /// Carries out the next step of the program's operation.
    fn go_on(&self, program: Program) -> Self {
        match program.step {
            Step::Idle => self.clone(),
            Step::AttachStored => {
                let attached = Program {
                    is_attached: true,
                    is_in: true,
                    before: self.unpassed,
                    read_aside: 0,
                    read: 0,
                    written: self.handed_over,
                    ..program
                };
                self.step(attached, Step::Idle, Self::enter)
            }
            Step::HandOverStored => self.step(program, Step::Idle, |world| {
                world.is_owned_by_kernel = world.passed == program.read;
            }),
            Step::HeldBack => self.step(program, Step::LeftMap, |world| world.is_in = false),
            Step::LeftMap => self.step(program, Step::LetIn, |world| world.is_held_back = false),
            Step::LetIn if self.passed == program.read => {
                let aside = Program {
                    is_in: false,
                    ..program
                };
                self.step(aside, Step::Idle, |_| ())
            }
            Step::LetIn => self.step(program, Step::Idle, Self::enter),
            Step::UnpassedStored => {
                let inside = Program {
                    is_in: true,
                    before: self.unpassed,
                    read_aside: 0,
                    ..program
                };
                self.step(inside, Step::Idle, Self::enter)
            }
        }
    }

    /// Lets the next program take over.
    fn start(&mut self) {
        self.is_owned_by_kernel = false;
        self.is_held_back = false;
        let mut program = Program {
            step: Step::Idle,
            is_attached: self.is_attached,
            is_in: self.is_in,
            before: 0,
            read_aside: self.read_in_all,
            read: 0,
            written: self.written_in_all,
        };
        if self.is_attached {
            if self.is_in {
                self.enter();
            }
            let counts = Counts {
                is_in: self.is_in,
                consumed: self.read_in_all + self.taken,
                written: self.written,
                taken: self.taken,
                replied: self.replied,
                passed: self.passed,
                unpassed: self.unpassed,
                handed_over: self.handed_over,
            };
            let position = counts.position();
            if position.enters {
                self.enter();
            }
            program.is_in = self.is_in;
            program.before = position.before;
            program.read_aside = position.read_aside;
            program.read = position.read;
            program.written = position.written;
        }
        self.program = Some(program);
    }

    /// Checks the invariants, which hold whenever the program is idle.
    fn check(&self) {
        let Some(program) = self.program.filter(|program| program.step == Step::Idle) else {
            return;
        };
        let read = program.before + program.read_aside + program.read;
        assert_eq!(read, self.read_in_all, "read: {self:?}");
        assert_eq!(program.written, self.written_in_all, "written: {self:?}");
        assert_eq!(program.is_in, self.is_in, "in the map: {self:?}");
        if !program.is_attached {
            return;
        }
        let passed = self.queue.iter().filter(|byte| **byte == Byte::Passed);
        assert_eq!(
            self.passed,
            program.read + passed.count() as u64,
            "passed: {self:?}"
        );
        let is_written = self.on_their_way == 0;
        assert_eq!(self.may_write(&program), is_written, "may write: {self:?}");
    }
}

#[test]
fn the_next_program_continues_where_the_earlier_one_died() {
    let mut seen = HashSet::from([World::new()]);
    let mut left = vec![World::new()];
    while let Some(world) = left.pop() {
        world.check();
        for next in world.next() {
            if seen.insert(next.clone()) {
                left.push(next);
            }
        }
    }
    println!("{} states", seen.len());
    let has = |what: &dyn Fn(&World) -> bool| assert!(seen.iter().any(what));
    has(&|world| world.taken > 1 && world.passed > 1 && world.deaths_left == 0);
    has(&|world| world.is_attached && !world.is_in && world.program.is_none() && world.passed > 0);
}
