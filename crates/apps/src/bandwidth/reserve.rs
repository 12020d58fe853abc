//! The transaction of a reservation (McNettle Figure 6): without a lock, and without a rollback when it fails.

use urtica_state::{Abort, TVar, Transaction, retry};

fn reserve_link(tx: &mut Transaction, free: &TVar<u64>, amount: u64) -> Result<(), Abort> {
    let current = free.read(tx)?;
    if current < amount {
        return retry();
    }
    free.write(tx, current - amount)
}

/// Reserves on all links of a path, or on none of them. Returns `true` if it has reserved.
fn reserve_path(tx: &mut Transaction, path: &[TVar<u64>], amount: u64) -> Result<bool, Abort> {
    let mut links = path.iter();
    let mut reserve = |tx: &mut _| links.try_for_each(|link| reserve_link(tx, link, amount));
    tx.or_else(|tx| reserve(tx).map(|()| true), |_| Ok(false))
}

/// Reserves on the first path with enough free bandwidth, and returns its index.
pub(super) fn reserve_any(
    tx: &mut Transaction,
    paths: &[Vec<TVar<u64>>],
    amount: u64,
) -> Result<Option<usize>, Abort> {
    for (index, path) in paths.iter().enumerate() {
        if reserve_path(tx, path, amount)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Releases the reservation on a path.
pub(super) fn release_path(
    tx: &mut Transaction,
    path: &[TVar<u64>],
    amount: u64,
) -> Result<(), Abort> {
    let mut links = path.iter();
    links.try_for_each(|free| free.modify(tx, |free| free + amount))
}

#[cfg(test)]
mod tests;
