//! The output of `urtica bench switch`: a table, and JSON lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use urtica_bench::Error;
use urtica_switch_bench::Record;

/// A table and a file of JSON lines.
pub struct Output {
    json: Option<Box<dyn Write>>,
    table: Box<dyn Write>,
    /// The headings of the last row.
    columns: Option<&'static [(&'static str, usize)]>,
}

impl Output {
    /// Opens a table on standard output, and a file to append JSON lines to, if one is given. `-` is standard output, and the
    /// table is then printed to standard error.
    ///
    /// # Errors
    /// The system's, if the file cannot be written.
    pub fn new(json: Option<&Path>) -> Result<Self, Error> {
        let is_stdout = json.is_some_and(|path| path.as_os_str() == "-");
        let file: Option<Box<dyn Write>> = match json {
            None => None,
            Some(_) if is_stdout => Some(Box::new(io::stdout())),
            Some(path) => Some(Box::new(append(path)?)),
        };
        let table: Box<dyn Write> = match is_stdout {
            true => Box::new(io::stderr()),
            false => Box::new(io::stdout()),
        };
        Ok(Self {
            json: file,
            table,
            columns: None,
        })
    }

    /// Prints a record.
    ///
    /// # Errors
    /// The system's, if its JSON line cannot be written.
    pub fn print<R: Record>(&mut self, record: &R) -> Result<(), Error> {
        if self.columns != Some(R::COLUMNS) {
            let headings = R::COLUMNS.iter().map(|(heading, _)| (*heading).to_owned());
            self.print_row(R::COLUMNS, &headings.collect::<Vec<_>>());
            self.columns = Some(R::COLUMNS);
        }
        self.print_row(R::COLUMNS, &record.cells());
        let Some(json) = &mut self.json else {
            return Ok(());
        };
        serde_json::to_string(record)
            .map_err(io::Error::from)
            .and_then(|line| writeln!(json, "{line}"))
            .and_then(|()| json.flush())
            .map_err(Error::system("write the JSON lines"))
    }

    fn print_row(&mut self, columns: &[(&str, usize)], cells: &[String]) {
        let padded = cells
            .iter()
            .zip(columns)
            .map(|(cell, &(_, width))| format!("{cell:>width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        // A closed pipe, as in `| head`, is no failure of the benchmark.
        let _ = writeln!(self.table, "{line}");
    }
}

fn append(path: &Path) -> Result<File, Error> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(Error::system(format!("write {}", path.display())))
}
