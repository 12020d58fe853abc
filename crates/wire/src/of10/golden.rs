//! The shared helpers of the tests, for this version.

use crate::golden;
use crate::{Element, Message, Version};
use std::fmt::Debug;

pub(super) use crate::golden::message;

/// `bytes` are `element`, and the other way round.
#[track_caller]
pub(super) fn element<'a, T>(bytes: &'a [u8], element: &T)
where
    T: Element<'a> + PartialEq + Debug,
{
    golden::element(Version::Of10, bytes, element);
}

/// The bytes of an element that can be written.
#[track_caller]
pub(super) fn written<'a>(element: &impl Element<'a>) -> Vec<u8> {
    golden::written(Version::Of10, element)
}

/// What the error says when `element` is written.
#[track_caller]
pub(super) fn refused<'a>(element: &impl Element<'a>) -> String {
    golden::refused(Version::Of10, element).to_string()
}

/// What the error says when `message` is written.
#[track_caller]
pub(super) fn refused_message(message: &Message) -> String {
    golden::refused_message(Version::Of10, message).to_string()
}
