//! Hints for errors that flow entries often cause.

use urtica_wire::ErrorCode;

/// Returns a hint to append to the name of an error, or an empty text.
pub fn hint(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::BadMatchBadPrereq => {
            "; a field depends on a protocol that the match does not name, such as ip, ipv6, arp, tcp or udp"
        }
        _ => "",
    }
}
