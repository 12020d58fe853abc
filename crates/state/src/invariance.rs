//! What must not compile: a shared value that changes its type on the way.
//!
//! A function over any lifetime is one over `'static`, too. A variable that holds the one is no variable of the other: who
//! takes it for that could write a function that keeps its argument, and who reads it as it was made would hand it something
//! that is freed soon.

/// A variable stays one of its own type,
///
/// ```
/// use urtica_state::TVar;
/// fn same(any: TVar<for<'a> fn(&'a str)>) -> TVar<for<'a> fn(&'a str)> { any }
/// ```
///
/// and is none of a supertype,
///
/// ```compile_fail,E0308
/// use urtica_state::TVar;
/// fn wider(any: TVar<for<'a> fn(&'a str)>) -> TVar<fn(&'static str)> { any }
/// ```
///
/// or subtype.
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

/// Keys and values alike.
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
