//! A cache of code, so that similar tables and entries share it.

use super::{Assembler, Code, CodeError};
use crate::fast::datapath::action_program::ActionProgram;
use crate::fast::datapath::key::KeyMask;
use crate::fast::datapath::table::{HashPart, LpmPart};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// The key of code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CodeKey {
    /// Of a [`Template::Hash`](crate::fast::datapath::table::Template::Hash).
    Hash(Vec<HashPart>),
    /// Of a [`Template::Lpm`](crate::fast::datapath::table::Template::Lpm).
    Lpm(LpmPart),
    /// Of a [`Template::Cut`](crate::fast::datapath::table::Template::Cut).
    Cut(KeyMask),
    /// Of a [`Template::Merged`](crate::fast::datapath::table::Template::Merged).
    Merged,
    /// Of a [`Template::Direct`](crate::fast::datapath::table::Template::Direct) without rules, which most tables have.
    Nothing,
    /// Of a [`Template::Plain`](crate::fast::datapath::table::Template::Plain).
    Plain,
    /// Of an action program.
    Actions(ActionProgram),
}

/// Code in use, by key. Users keep it alive while frames may reach it; then it is freed.
#[derive(Debug, Default)]
pub(crate) struct CodeCache {
    codes: HashMap<CodeKey, Weak<Code>>,
}

impl CodeCache {
    /// Returns the code for a key, and generates it if necessary. Unused entries are removed whenever code is generated, since
    /// generating needs far more time.
    ///
    /// # Errors
    /// The assembler's errors.
    /// Those of the assembler.
    pub fn get(&mut self, assembler: &Assembler, key: &CodeKey) -> Result<Arc<Code>, CodeError> {
        if let Some(code) = self.codes.get(key).and_then(Weak::upgrade) {
            return Ok(code);
        }
        self.codes.retain(|_, code| code.strong_count() > 0);
        let code = Arc::new(match key {
            CodeKey::Hash(parts) => assembler.hash(parts),
            CodeKey::Lpm(part) => assembler.lpm(part),
            CodeKey::Cut(mask) => assembler.cut(mask),
            CodeKey::Merged => assembler.merged(),
            CodeKey::Nothing => assembler.direct(&[]),
            CodeKey::Plain => assembler.plain(),
            CodeKey::Actions(program) => assembler.actions(program),
        }?);
        self.codes.insert(key.clone(), Arc::downgrade(&code));
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_shared_while_in_use() {
        let assembler = Assembler::new(1 << 20, false);
        let mut cache = CodeCache::default();
        let first = cache.get(&assembler, &CodeKey::Plain).unwrap();
        let second = cache.get(&assembler, &CodeKey::Plain).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(assembler.used_bytes(), 4096);
        drop((first, second));
        assert_eq!(assembler.used_bytes(), 0);
        assert!(cache.get(&assembler, &CodeKey::Plain).is_ok());
    }

    #[test]
    fn space_is_bounded() {
        let assembler = Assembler::new(4096, false);
        let mut cache = CodeCache::default();
        let plain = cache.get(&assembler, &CodeKey::Plain);
        assert!(matches!(
            assembler.plain(),
            Err(CodeError::NoRoom { limit_bytes: 4096 })
        ));
        drop(plain);
        assert!(assembler.plain().is_ok());
    }
}
