//! Urtica's multipart request for how a switch has compiled its flow tables. Only Urtica's switch answers it. In 1.0 it is a
//! request for a vendor's statistics.
//!
//! The request's data are the type 1 in four bytes. The reply's data are that type, and then for each table with entries: the
//! row's length in two bytes, the table in one, a zero, and the form as UTF-8 text for readers.
//!
//! ```
//! use urtica_wire::{Element, ExperimenterMultipart, TableForm, Version};
//!
//! let form = TableForm { table_id: 2, form: "compound hash".into() };
//! let mut data = TableForm::REPLY.data.to_vec();
//! form.encode(Version::Of13, &mut data)?;
//! let reply = ExperimenterMultipart { data: &data, ..TableForm::REPLY };
//! let rows = TableForm::rows(Version::Of13, &reply)?.expect("it is such a reply");
//! assert_eq!(rows.iter().next(), Some(form));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::{
    DecodeError, Element, EncodeError, ExperimenterMultipart, List, Put, Reader, Structure, Version,
};
use std::borrow::Cow;

/// The experimenter id of Urtica's messages: a locally administered OUI, which no vendor has.
pub const URTICA: u32 = 0x0002_7572;

/// The type of the message, and the start of its data.
const TABLE_FORMS: &[u8] = &1_u32.to_be_bytes();

/// The size of a row without its text, in bytes.
const ROW_MIN_SIZE: usize = 4;

/// The compiled form of a switch's flow table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableForm<'a> {
    /// The table.
    pub table_id: u8,
    /// The form, as text.
    pub form: Cow<'a, str>,
}

impl<'a> TableForm<'a> {
    /// The request.
    pub const REQUEST: ExperimenterMultipart<'static> = ExperimenterMultipart {
        experimenter: URTICA,
        data: TABLE_FORMS,
    };

    /// The reply, without rows.
    pub const REPLY: ExperimenterMultipart<'static> = Self::REQUEST;

    /// Returns whether a message is the request.
    pub fn is_request(asked: &ExperimenterMultipart) -> bool {
        *asked == Self::REQUEST
    }

    /// Returns a copy without borrowed data.
    pub fn into_owned(self) -> TableForm<'static> {
        TableForm {
            table_id: self.table_id,
            form: self.form.into_owned().into(),
        }
    }

    /// Reads a part of the reply; returns `None` if it is another experimenter message.
    ///
    /// # Errors
    /// [`DecodeError`] if a row is truncated. Bytes that are not UTF-8 are read as U+FFFD.
    pub fn rows(
        version: Version,
        reply: &ExperimenterMultipart<'a>,
    ) -> Result<Option<List<'a, Self>>, DecodeError> {
        match reply.data.strip_prefix(TABLE_FORMS) {
            Some(rows) if reply.experimenter == URTICA => List::from_wire(version, rows).map(Some),
            _ => Ok(None),
        }
    }
}

impl<'a> Element<'a> for TableForm<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut row = reader.sized(0, ROW_MIN_SIZE, Structure::TableForm)?;
        row.skip(2)?;
        let table_id = row.u8()?;
        row.skip(1)?;
        Ok(Self {
            table_id,
            form: String::from_utf8_lossy(row.rest()),
        })
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        out.put_zeros(2);
        out.put_u8(self.table_id);
        out.put_zeros(1);
        out.put(self.form.as_bytes());
        out.set_length(start, start, "form of a table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply_of(rows: &[TableForm]) -> Vec<u8> {
        let mut data = TABLE_FORMS.to_vec();
        for row in rows {
            row.encode(Version::Of13, &mut data).unwrap();
        }
        data
    }

    fn read(experimenter: u32, data: &[u8]) -> Result<Option<Vec<TableForm<'_>>>, DecodeError> {
        let reply = ExperimenterMultipart { experimenter, data };
        let rows = TableForm::rows(Version::Of13, &reply)?;
        Ok(rows.map(|rows| rows.iter().collect()))
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let rows = [
            (0, "direct code"),
            (7, ""),
            (254, "decomposition by in_port"),
        ];
        let rows = rows.map(|(table_id, form)| TableForm {
            table_id,
            form: form.into(),
        });
        assert_eq!(read(URTICA, &reply_of(&rows)), Ok(Some(rows.to_vec())));
        assert_eq!(read(URTICA, TABLE_FORMS), Ok(Some(Vec::new())));
    }

    #[test]
    fn ignores_replies_of_others() {
        let data = reply_of(&[]);
        assert_eq!(read(crate::NICIRA, &data), Ok(None));
        assert_eq!(read(URTICA, &[0, 0, 0, 2]), Ok(None));
        assert_eq!(read(URTICA, &[0, 0, 1]), Ok(None));
    }

    #[test]
    fn rows_of_impossible_lengths_are_refused() {
        for row in [&[0][..], &[0, 3, 1, 0], &[0, 5, 1, 0], &[0, 0, 0, 0]] {
            let data = [TABLE_FORMS, row].concat();
            assert!(read(URTICA, &data).is_err(), "{row:?}");
        }
    }

    #[test]
    fn invalid_utf_8_is_shown_with_replacement_characters() {
        let data = [TABLE_FORMS, &[0, 6, 3, 0, 0xff, b'a']].concat();
        let rows = read(URTICA, &data).unwrap().unwrap();
        assert_eq!(rows[0].form, "\u{fffd}a");
    }

    #[test]
    fn a_form_that_exceeds_a_row_is_not_written() {
        let form = TableForm {
            table_id: 0,
            form: "x".repeat(70_000).into(),
        };
        let refused = form.encode(Version::Of13, &mut Vec::new());
        assert!(matches!(refused, Err(EncodeError::TooLong { .. })));
    }
}
