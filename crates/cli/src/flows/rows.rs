//! Replies as `ovs-ofctl` prints them, but with one line per port, table, group or meter, for eyes and for `grep`.

/// The maximum indentation of the first line of a row.
const ROW_INDENT_MAX: usize = 3;

/// Joins the lines of each row.
pub fn one_line_each(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let content = line.trim_start_matches(' ');
        if joined.is_empty() {
            joined.push_str(line);
        } else if line.len() - content.len() > ROW_INDENT_MAX {
            if !joined.ends_with([',', ':']) {
                joined.push(',');
            }
            joined.push(' ');
            push_squeezed(&mut joined, content);
        } else {
            joined.push('\n');
            joined.push_str(line);
        }
    }
    joined
}

/// Appends a text with runs of blanks replaced by one.
fn push_squeezed(out: &mut String, text: &str) {
    let words: Vec<&str> = text.split_whitespace().collect();
    out.push_str(&words.join(" "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lines() {
        let port = " 1(eth1): addr:02:00:00:00:00:01\n     config:     0\n     state:      LIVE\n \
                    LOCAL(s1): addr:02:00:00:00:00:02\n     config:     PORT_DOWN";
        let text = format!("OFPST_PORT_DESC reply (OF1.3) (xid=0x3):\n{port}");
        assert_eq!(
            one_line_each(&text),
            "OFPST_PORT_DESC reply (OF1.3) (xid=0x3):\n \
             1(eth1): addr:02:00:00:00:00:01, config: 0, state: LIVE\n \
             LOCAL(s1): addr:02:00:00:00:00:02, config: PORT_DOWN"
        );
        let stats = "  port  1: rx pkts=1, bytes=2\n           tx pkts=3";
        assert_eq!(
            one_line_each(stats),
            "  port  1: rx pkts=1, bytes=2, tx pkts=3"
        );
    }
}
