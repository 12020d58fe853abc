//! The shared helpers of the tests, for this version.

use crate::golden;
use crate::{Element, Message, Version};
use std::fmt::Debug;

pub(super) use crate::golden::message;

/// Checks that `bytes` decode to `element`, and that it encodes to them.
#[track_caller]
pub(super) fn element<'a, T>(bytes: &'a [u8], element: &T)
where
    T: Element<'a> + PartialEq + Debug,
{
    golden::element(Version::Of10, bytes, element);
}

/// Encodes an element without an error.
#[track_caller]
pub(super) fn written<'a>(element: &impl Element<'a>) -> Vec<u8> {
    golden::written(Version::Of10, element)
}

/// Returns the text of the error of writing `element`.
#[track_caller]
pub(super) fn refused<'a>(element: &impl Element<'a>) -> String {
    golden::refused(Version::Of10, element).to_string()
}

/// Returns the text of the error of writing `message`.
#[track_caller]
pub(super) fn refused_message(message: &Message) -> String {
    golden::refused_message(Version::Of10, message).to_string()
}
