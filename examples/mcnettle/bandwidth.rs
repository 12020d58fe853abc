//! Bandwidth reservation (McNettle Figure 6): on all links of a path or on none, without locks and without undoing.

use urtica::state::{Abort, TVar, Transaction, atomically, check};

fn reserve(tx: &mut Transaction, link: &TVar<u64>, amount: u64) -> Result<(), Abort> {
    let current = link.read(tx)?;
    check(current >= amount)?;
    link.write(tx, current - amount)
}

/// Whether `amount` was reserved on all links of the path; if not, it is on none.
pub fn reserve_path(tx: &mut Transaction, path: &[TVar<u64>], amount: u64) -> Result<bool, Abort> {
    let on_all = |tx: &mut _| path.iter().try_for_each(|link| reserve(tx, link, amount));
    tx.or_else(|tx| on_all(tx).map(|()| true), |_| Ok(false))
}

fn main() {
    let path = [100, 40, 100].map(TVar::new);
    for amount in [30, 30, 10] {
        let granted = atomically(|tx| reserve_path(tx, &path, amount));
        println!(
            "{amount}: {granted}, {:?} left",
            path.each_ref().map(TVar::load)
        );
    }
}
