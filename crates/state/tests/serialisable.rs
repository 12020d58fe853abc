//! Tests of transactions against a sequential model. In one thread they agree with the model; on several threads the model
//! agrees if it runs them one after another in some order.
//!
//! Each variable counts its writes. Each transaction of each thread reports the counts that it has read and written; they
//! determine which transaction must precede which. If an order satisfies this, the model runs all transactions in that order,
//! and must read and write equal values.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Mutex;
use std::thread;
use urtica_state::{Abort, Limits, Refused, TVar, Transaction, retry, try_atomically};

const VARIABLES: usize = 5;

/// A step of a program. A program has a sum to which all its reads are added.
#[derive(Clone, Debug)]
enum Step {
    Read(usize),
    Write(usize, u32),
    /// Retries if the variable's value is odd.
    RetryIfOdd(usize),
    OrElse(Vec<Step>, Vec<Step>),
    /// Lets other threads run.
    Yield,
}

fn step() -> impl Strategy<Value = Step> {
    let variable = 0..VARIABLES;
    let leaf = prop_oneof![
        3 => variable.clone().prop_map(Step::Read),
        4 => (variable.clone(), 0..100_u32).prop_map(|(at, add)| Step::Write(at, add)),
        2 => variable.prop_map(Step::RetryIfOdd),
        1 => Just(Step::Yield),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let branch = prop::collection::vec(inner, 0..4);
        (branch.clone(), branch).prop_map(|(first, second)| Step::OrElse(first, second))
    })
}

fn program() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..6)
}

/// A variable's content: the count of its writes, and a number.
type Content = (u32, u32);

/// A representation of the content: in the variable itself, or behind a pointer.
trait Stored: Clone + Debug + Send + Sync + 'static {
    fn keep(content: Content) -> Self;
    fn content(&self) -> Content;
}

impl Stored for u64 {
    fn keep((count, value): Content) -> Self {
        u64::from(count) << 32 | u64::from(value)
    }

    fn content(&self) -> Content {
        ((self >> 32) as u32, *self as u32)
    }
}

impl Stored for Vec<u32> {
    fn keep((count, value): Content) -> Self {
        vec![count, value]
    }

    fn content(&self) -> Content {
        (self[0], self[1])
    }
}

/// The outcome of a program: each content that it has read, and its final sum, or `None` if it retried.
#[derive(Clone, Debug, Default, PartialEq)]
struct Outcome {
    reads: Vec<(usize, Content)>,
    result: Option<u32>,
}

fn written((count, _): Content, sum: u32, add: u32) -> Content {
    (count + 1, sum.wrapping_mul(31).wrapping_add(add) % 1000)
}

/// Runs a program in a transaction.
struct Run<'a, T> {
    variables: &'a [TVar<T>],
    /// The reads of this attempt.
    reads: &'a Mutex<Vec<(usize, Content)>>,
}

impl<T: Stored> Run<'_, T> {
    fn read(&self, at: usize, tx: &mut Transaction) -> Result<Content, Abort> {
        let content = self.variables[at].read(tx)?.content();
        self.reads
            .lock()
            .expect("nobody panics")
            .push((at, content));
        Ok(content)
    }

    fn steps(&self, steps: &[Step], sum: u32, tx: &mut Transaction) -> Result<u32, Abort> {
        steps.iter().try_fold(sum, |sum, step| match step {
            Step::Read(at) => Ok(sum.wrapping_add(self.read(*at, tx)?.1)),
            Step::Write(at, add) => {
                let content = written(self.read(*at, tx)?, sum, *add);
                self.variables[*at].write(tx, T::keep(content))?;
                Ok(sum)
            }
            Step::RetryIfOdd(at) if self.read(*at, tx)?.1 % 2 != 0 => retry(),
            Step::RetryIfOdd(_) => Ok(sum),
            Step::OrElse(first, second) => tx.or_else(
                |tx| self.steps(first, sum, tx),
                |tx| self.steps(second, sum, tx),
            ),
            Step::Yield => {
                thread::yield_now();
                Ok(sum)
            }
        })
    }
}

fn run<T: Stored>(variables: &[TVar<T>], program: &[Step]) -> Outcome {
    let reads = Mutex::new(Vec::new());
    let limits = Limits::DEFAULT.attempts(u32::MAX);
    let result = try_atomically(limits, |tx| {
        reads.lock().expect("nobody panics").clear();
        Run {
            variables,
            reads: &reads,
        }
        .steps(program, 0, tx)
    });
    assert!(matches!(result, Ok(_) | Err(Refused::Retry)), "{result:?}");
    let reads = reads.into_inner().expect("nobody panics");
    Outcome {
        reads,
        result: result.ok(),
    }
}

/// The reference model: all variables, and copies of them for rollbacks.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    variables: [Content; VARIABLES],
    reads: Vec<(usize, Content)>,
}

impl Model {
    fn new() -> Self {
        Self {
            variables: [(0, 0); VARIABLES],
            reads: Vec::new(),
        }
    }

    fn run(&mut self, program: &[Step]) -> Outcome {
        let before = self.variables;
        let result = self.steps(program, 0);
        if result.is_none() {
            self.variables = before;
        }
        Outcome {
            reads: std::mem::take(&mut self.reads),
            result,
        }
    }

    fn read(&mut self, at: usize) -> Content {
        self.reads.push((at, self.variables[at]));
        self.variables[at]
    }

    fn steps(&mut self, steps: &[Step], sum: u32) -> Option<u32> {
        steps.iter().try_fold(sum, |sum, step| match step {
            Step::Read(at) => Some(sum.wrapping_add(self.read(*at).1)),
            Step::Write(at, add) => {
                self.variables[*at] = written(self.read(*at), sum, *add);
                Some(sum)
            }
            Step::RetryIfOdd(at) => (self.read(*at).1 % 2 == 0).then_some(sum),
            Step::OrElse(first, second) => {
                let before = self.variables;
                self.steps(first, sum).or_else(|| {
                    self.variables = before;
                    self.steps(second, sum)
                })
            }
            Step::Yield => Some(sum),
        })
    }
}

fn variables<T: Stored>() -> Vec<TVar<T>> {
    (0..VARIABLES).map(|_| TVar::new(T::keep((0, 0)))).collect()
}

fn agrees_alone<T: Stored>(programs: &[Vec<Step>]) {
    let (variables, mut model) = (variables::<T>(), Model::new());
    for program in programs {
        assert_eq!(run(&variables, program), model.run(program));
        let loaded: Vec<_> = variables
            .iter()
            .map(|variable| variable.load().content())
            .collect();
        assert_eq!(loaded, model.variables);
    }
}

fn agrees_in_some_order<T: Stored>(threads: &[Vec<Vec<Step>>]) {
    let variables = variables::<T>();
    let run_all = &|programs: &[Vec<Step>]| -> Vec<_> {
        let outcomes = programs.iter().map(|program| run(&variables, program));
        outcomes.collect()
    };
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let spawned = threads
            .iter()
            .map(|programs| scope.spawn(move || run_all(programs)));
        let threads: Vec<_> = spawned.collect();
        let outcomes = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        outcomes.flatten().collect()
    });
    let programs: Vec<_> = threads.iter().flatten().collect();
    let mut model = Model::new();
    for at in order(&programs, &outcomes) {
        assert_eq!(model.run(programs[at]), outcomes[at]);
    }
    let loaded: Vec<_> = variables
        .iter()
        .map(|variable| variable.load().content())
        .collect();
    assert_eq!(loaded, model.variables);
}

/// The transactions that have read one count of a variable.
#[derive(Default)]
struct Count {
    readers: Vec<usize>,
    /// The transaction that has committed the next count, and that count.
    overwriter: Option<(usize, u32)>,
}

/// Returns an order of all transactions in which each reads the writes of the earlier ones.
fn order(programs: &[&Vec<Step>], outcomes: &[Outcome]) -> Vec<usize> {
    let mut follows = vec![BTreeSet::new(); outcomes.len()];
    for variable in 0..VARIABLES {
        let mut counts: BTreeMap<u32, Count> = BTreeMap::new();
        for (at, outcome) in outcomes.iter().enumerate() {
            let mut reads = outcome.reads.iter().filter(|(read, _)| *read == variable);
            let Some(&(_, (count, _))) = reads.next() else {
                continue;
            };
            let found = counts.entry(count).or_default();
            found.readers.push(at);
            let next = last_count(programs[at], outcome, variable);
            if let Some(next) = next.filter(|next| *next > count) {
                let other = found.overwriter.replace((at, next));
                assert_eq!(
                    other, None,
                    "two transactions have overwritten the same value"
                );
            }
        }
        for found in counts.values() {
            let Some((writer, next)) = found.overwriter else {
                continue;
            };
            let before = found.readers.iter().filter(|&&at| at != writer);
            follows[writer].extend(before);
            let after = counts.get(&next).map_or(&[][..], |next| &next.readers);
            after.iter().for_each(|&at| _ = follows[at].insert(writer));
        }
    }
    sorted(follows)
}

/// Returns the count of a variable after a transaction, by running the model of this transaction alone on its reads.
fn last_count(program: &[Step], outcome: &Outcome, variable: usize) -> Option<u32> {
    outcome.result?;
    let mut model = Model::new();
    for &(at, content) in outcome.reads.iter().rev() {
        model.variables[at] = content; // The first read comes last: what the transaction found.
    }
    model.run(program);
    Some(model.variables[variable].0)
}

/// Returns an order of the numbers, in which each is after all that it follows.
fn sorted(mut follows: Vec<BTreeSet<usize>>) -> Vec<usize> {
    let mut order = Vec::new();
    let mut left: BTreeSet<_> = (0..follows.len()).collect();
    while let Some(&next) = left.iter().find(|&&at| follows[at].is_empty()) {
        left.remove(&next);
        follows
            .iter_mut()
            .for_each(|before| _ = before.remove(&next));
        order.push(next);
    }
    assert!(
        left.is_empty(),
        "each of these transactions must come before another: {left:?}"
    );
    order
}

proptest! {
    #[test]
    fn transactions_of_one_thread_agree_with_the_model(
        programs in prop::collection::vec(program(), 1..20),
    ) {
        agrees_alone::<u64>(&programs);
        agrees_alone::<Vec<u32>>(&programs);
    }

    #[test]
    fn transactions_of_several_threads_have_an_order(
        threads in prop::collection::vec(prop::collection::vec(program(), 1..30), 2..4),
    ) {
        agrees_in_some_order::<u64>(&threads);
        agrees_in_some_order::<Vec<u32>>(&threads);
    }
}

#[test]
#[should_panic(expected = "must come before another")]
fn the_model_detects_a_cycle() {
    sorted(vec![
        BTreeSet::from([1]),
        BTreeSet::from([0]),
        BTreeSet::new(),
    ]);
}

/// Two transactions each read the variable that the other is about to write.
#[test]
#[should_panic(expected = "must come before another")]
fn the_model_detects_write_skew() {
    let programs = [
        vec![Step::Read(0), Step::Write(1, 1)],
        vec![Step::Read(1), Step::Write(0, 1)],
    ];
    let found = |first, second| Outcome {
        reads: vec![(first, (0, 0)), (second, (0, 0))],
        result: Some(0),
    };
    order(
        &programs.iter().collect::<Vec<_>>(),
        &[found(0, 1), found(1, 0)],
    );
}
