//! Shared values are invariant in their type: code that changes the type must not compile.
//!
//! A function over any lifetime is also a function over `'static`. But a variable that holds the former is not a variable of
//! the latter: through the wider type, a program could store a function that keeps its argument, and a reader with the original
//! type would pass it a reference that is soon freed.

/// A variable keeps its exact type,
///
/// ```
/// use urtica_state::TVar;
/// fn same(any: TVar<for<'a> fn(&'a str)>) -> TVar<for<'a> fn(&'a str)> { any }
/// ```
///
/// and does not convert to a supertype
///
/// ```compile_fail,E0308
/// use urtica_state::TVar;
/// fn wider(any: TVar<for<'a> fn(&'a str)>) -> TVar<fn(&'static str)> { any }
/// ```
///
/// or a subtype.
///
/// ```compile_fail,E0308
/// use urtica_state::TVar;
/// fn narrower(any: TVar<fn(&'static str)>) -> TVar<for<'a> fn(&'a str)> { any }
/// ```
struct OfTVar;

/// ```
/// use urtica_state::Snapshot;
/// fn same(any: &Snapshot<for<'a> fn(&'a str)>) -> &Snapshot<for<'a> fn(&'a str)> { any }
/// ```
///
/// ```compile_fail,E0308
/// use urtica_state::Snapshot;
/// fn wider(any: &Snapshot<for<'a> fn(&'a str)>) -> &Snapshot<fn(&'static str)> { any }
/// ```
///
/// ```compile_fail,E0308
/// use urtica_state::Snapshot;
/// fn narrower(any: &Snapshot<fn(&'static str)>) -> &Snapshot<for<'a> fn(&'a str)> { any }
/// ```
struct OfSnapshot;

/// Both the key type and the value type are invariant.
///
/// ```
/// use urtica_state::Table;
/// fn same(any: &Table<for<'a> fn(&'a str), u8>) -> &Table<for<'a> fn(&'a str), u8> { any }
/// ```
///
/// ```compile_fail,E0308
/// use urtica_state::Table;
/// fn wider(any: &Table<for<'a> fn(&'a str), u8>) -> &Table<fn(&'static str), u8> { any }
/// ```
///
/// ```compile_fail,E0308
/// use urtica_state::Table;
/// fn narrower(any: &Table<fn(&'static str), u8>) -> &Table<for<'a> fn(&'a str), u8> { any }
/// ```
///
/// ```compile_fail,E0308
/// use urtica_state::Table;
/// fn wider(any: &Table<u8, for<'a> fn(&'a str)>) -> &Table<u8, fn(&'static str)> { any }
/// ```
///
/// ```compile_fail,E0308
/// use urtica_state::Table;
/// fn narrower(any: &Table<u8, fn(&'static str)>) -> &Table<u8, for<'a> fn(&'a str)> { any }
/// ```
struct OfTable;
