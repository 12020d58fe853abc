//! Parsing samples in Prometheus's text format, or OpenMetrics'.

use std::collections::BTreeMap;

/// The labels of a sample.
pub type Labels = BTreeMap<String, String>;

/// All samples of a page, by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, Vec<(Labels, f64)>>);

impl Metrics {
    /// Returns the samples of one name.
    pub fn rows(&self, name: &str) -> &[(Labels, f64)] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the sum of a name's samples; `None` without any.
    pub fn value(&self, name: &str) -> Option<f64> {
        let rows = self.rows(name);
        (!rows.is_empty()).then(|| rows.iter().fold(0.0, |sum, (_, value)| sum + value))
    }
}

/// Parses a page. Skips comments and invalid lines.
pub fn parse(page: &str) -> Metrics {
    let mut metrics = Metrics::default();
    for line in page.lines() {
        if let Some((name, labels, value)) = parse_line(line) {
            metrics.0.entry(name).or_default().push((labels, value));
        }
    }
    metrics
}

/// Parses `name{label="value",…} value [timestamp]`.
fn parse_line(line: &str) -> Option<(String, Labels, f64)> {
    let end = line.find(|letter: char| !is_of_name(letter))?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => parse_labels(rest)?,
        None => (Labels::new(), rest),
    };
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then(|| (name.to_owned(), labels, value))
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':')
}

/// Parses labels after the opening brace; returns them, and the rest after the closing one.
fn parse_labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, value) = rest.split_once("=\"")?;
        let (value, after) = parse_value(value)?;
        labels.insert(name.to_owned(), value);
        rest = after;
    }
}

/// Parses a value after the opening quote; returns it, and the rest after the closing one.
fn parse_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            _ => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_have_names_labels_and_values() {
        let page = "# HELP a A\n# TYPE a gauge\na 3\na{x=\"1\"} 4 1700000000\n\
            b_total{dp_name=\"s\\\"1\\\\ \\n}\",port=\"2\"} 1.5e3\nc_bucket{le=\"+Inf\"} NaN\nempty{} 7\n# EOF\n";
        let metrics = parse(page);
        assert_eq!(metrics.value("a"), Some(7.0));
        let [(labels, value)] = metrics.rows("b_total") else {
            panic!("{metrics:?}");
        };
        assert_eq!((&*labels["dp_name"], &*labels["port"]), ("s\"1\\ \n}", "2"));
        assert_eq!(*value, 1500.0);
        assert_eq!(metrics.rows("c_bucket")[0].0["le"], "+Inf");
        assert_eq!(metrics.value("empty"), Some(7.0));
        assert_eq!(metrics.value("none"), None);
    }

    #[test]
    fn unknown_lines_are_skipped() {
        let page = "a\nb{\nc{x} 1\nd{x=\"1} 1\ne{x=\"\\\n{} 1\n 1\nf one\n<html>\ng 1\n";
        let metrics = parse(page);
        assert_eq!(metrics.names().collect::<Vec<_>>(), ["g"]);
    }

    proptest! {
        #[test]
        fn no_page_panics(page in r#"([a-z{}="\\, 0-9\n]|.)*"#) {
            let _ = parse(&page);
        }
    }
}
