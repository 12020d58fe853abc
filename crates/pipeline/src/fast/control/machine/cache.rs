//! Code by its shape, so that what looks alike shares it.

use super::{Assembler, Code, CodeError};
use crate::fast::datapath::action_program::ActionShape;
use crate::fast::datapath::key::KeyShape;
use crate::fast::datapath::table::{HashPart, LpmPart};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// What code is the same for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// Of a [`Template::Hash`](crate::fast::datapath::table::Template::Hash).
    Hash(Vec<HashPart>),
    /// Of a [`Template::Lpm`](crate::fast::datapath::table::Template::Lpm).
    Lpm(LpmPart),
    /// Of a [`Template::Cut`](crate::fast::datapath::table::Template::Cut).
    Cut(KeyShape),
    /// Of a [`Template::Direct`](crate::fast::datapath::table::Template::Direct) without rules, which most tables have.
    Nothing,
    /// Of a [`Template::Plain`](crate::fast::datapath::table::Template::Plain).
    Plain,
    /// Of cells.
    Actions(ActionShape),
}

/// Code that somebody uses, by shape. Whoever got some keeps it as long as frames may come to it; after that it goes.
#[derive(Debug, Default)]
pub(crate) struct CodeCache {
    codes: HashMap<Shape, Weak<Code>>,
}

impl CodeCache {
    /// The code for a shape, made now unless somebody has it already. What nobody has any more is forgotten whenever
    /// some is made, which takes far longer.
    ///
    /// # Errors
    /// Those of the assembler.
    pub fn get(&mut self, assembler: &Assembler, shape: &Shape) -> Result<Arc<Code>, CodeError> {
        if let Some(code) = self.codes.get(shape).and_then(Weak::upgrade) {
            return Ok(code);
        }
        self.codes.retain(|_, code| code.strong_count() > 0);
        let code = Arc::new(match shape {
            Shape::Hash(parts) => assembler.hash(parts),
            Shape::Lpm(part) => assembler.lpm(part),
            Shape::Cut(shape) => assembler.cut(shape),
            Shape::Nothing => assembler.direct(&[]),
            Shape::Plain => assembler.plain(),
            Shape::Actions(shape) => assembler.actions(shape),
        }?);
        self.codes.insert(shape.clone(), Arc::downgrade(&code));
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_shared_while_somebody_has_it() {
        let assembler = Assembler::new(1 << 20, false);
        let mut cache = CodeCache::default();
        let first = cache.get(&assembler, &Shape::Plain).unwrap();
        let second = cache.get(&assembler, &Shape::Plain).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(assembler.used_bytes(), 4096);
        drop((first, second));
        assert_eq!(assembler.used_bytes(), 0);
        assert!(cache.get(&assembler, &Shape::Plain).is_ok());
    }

    #[test]
    fn room_is_bounded() {
        let assembler = Assembler::new(4096, false);
        let mut cache = CodeCache::default();
        let plain = cache.get(&assembler, &Shape::Plain);
        assert!(matches!(
            assembler.plain(),
            Err(CodeError::NoRoom { limit_bytes: 4096 })
        ));
        drop(plain);
        assert!(assembler.plain().is_ok());
    }
}
