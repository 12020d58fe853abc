//! Tests that a reservation is made on all links of a path, or on none of them.

use super::*;
use proptest::prelude::*;
use std::thread;
use urtica_state::atomically;

/// A change to a network of [`LINKS`] links.
#[derive(Clone, Debug)]
enum Step {
    Reserve(Vec<Vec<usize>>, u64),
    /// Releases one of the granted reservations.
    Release(prop::sample::Index),
}

const LINKS: usize = 5;
const CAPACITY: u64 = 10;

fn path() -> impl Strategy<Value = Vec<usize>> {
    prop::sample::subsequence((0..LINKS).collect::<Vec<_>>(), 1..=3)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (prop::collection::vec(path(), 0..4), 1..=CAPACITY)
            .prop_map(|(paths, amount)| Step::Reserve(paths, amount)),
        1 => any::<prop::sample::Index>().prop_map(Step::Release),
    ]
}

fn network() -> Vec<TVar<u64>> {
    (0..LINKS).map(|_| TVar::new(CAPACITY)).collect()
}

fn variables(network: &[TVar<u64>], path: &[usize]) -> Vec<TVar<u64>> {
    path.iter().map(|&link| network[link].clone()).collect()
}

fn left(network: &[TVar<u64>]) -> Vec<u64> {
    network.iter().map(TVar::load).collect()
}

/// The sequential model: checks all links, then reserves.
fn reserve_in_turn(free: &mut [u64], paths: &[Vec<usize>], amount: u64) -> Option<usize> {
    let has_room = |path: &Vec<usize>| path.iter().all(|&link| free[link] >= amount);
    let chosen = paths.iter().position(has_room)?;
    paths[chosen].iter().for_each(|&link| free[link] -= amount);
    Some(chosen)
}

proptest! {
    #[test]
    fn agrees_with_the_sequential_model(steps in prop::collection::vec(step(), 0..40)) {
        let network = network();
        let mut free = vec![CAPACITY; LINKS];
        let mut granted = Vec::new();
        for step in steps {
            match step {
                Step::Reserve(paths, amount) => {
                    let as_variables: Vec<_> =
                        paths.iter().map(|path| variables(&network, path)).collect();
                    let chosen = atomically(|tx| reserve_any(tx, &as_variables, amount));
                    prop_assert_eq!(chosen, reserve_in_turn(&mut free, &paths, amount));
                    granted.extend(chosen.map(|index| (paths[index].clone(), amount)));
                }
                Step::Release(index) if !granted.is_empty() => {
                    let (path, amount) = granted.swap_remove(index.index(granted.len()));
                    let as_variables = variables(&network, &path);
                    atomically(|tx| release_path(tx, &as_variables, amount));
                    path.iter().for_each(|&link| free[link] += amount);
                }
                Step::Release(_) => {}
            }
            prop_assert_eq!(left(&network), free.clone());
        }
    }
}

#[test]
fn concurrent_reservations_never_exceed_the_capacity() {
    let network = network();
    let paths = [vec![0, 1, 2], vec![2, 3, 4]].map(|path| variables(&network, &path));
    let grants = |amount| {
        let granted =
            (0..100).filter(|_| atomically(|tx| reserve_any(tx, &paths, amount)).is_some());
        granted.count() as u64 * amount
    };
    let granted: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| grants(1))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.sum()
    });
    // Both paths use the third link.
    assert_eq!(granted, CAPACITY);
    assert_eq!(left(&network)[2], 0);
}
