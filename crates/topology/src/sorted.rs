//! Sorted lists.

/// The items of one sorted list that are not in another.
pub(crate) fn difference<'a, T: Ord>(
    items: &'a [T],
    others: &'a [T],
) -> impl Iterator<Item = &'a T> {
    let mut others = others.iter().peekable();
    items.iter().filter(move |&item| {
        while others.next_if(|&other| other < item).is_some() {}
        others.peek() != Some(&item)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_sets(items: BTreeSet<u8>, others: BTreeSet<u8>) {
            let [a, b] = [&items, &others].map(|set| set.iter().copied().collect::<Vec<_>>());
            prop_assert!(difference(&a, &b).eq(items.difference(&others)));
        }
    }
}
