//! Escaping untrusted names, and making them safe to show.

/// The maximum number of characters of a name to show.
const SHOWN: usize = 64;

/// Returns the start of a name. Characters that control the direction of text, are invisible, or are forbidden in XML are
/// replaced.
pub(super) fn shown(name: &str) -> String {
    cut(name, SHOWN)
}

/// Like [`shown`], with at most `length` characters.
pub(super) fn cut(name: &str, length: usize) -> String {
    let mut chars = name.chars().map(|char| match is_unseen(char) {
        true => char::REPLACEMENT_CHARACTER,
        false => char,
    });
    let mut text: String = chars.by_ref().take(length).collect();
    if chars.next().is_some() {
        text.pop();
        text.push('…');
    }
    text
}

fn is_unseen(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
        || matches!(char, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Escapes a name for text in XML, or for a quoted attribute.
pub(super) fn xml(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for char in name.chars() {
        match char {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\'' => text.push_str("&#39;"),
            char => text.push(char),
        }
    }
    text
}

/// Escapes a name for a quoted string in DOT. Graphviz expands backslashes in labels (`\N` is the node's name), and HTML
/// character references in any text.
pub(super) fn dot(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for char in name.chars() {
        match char {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '&' => text.push_str("&amp;"),
            char => text.push(char),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_unseen_characters_replaced() {
        assert_eq!(shown("s1-eth0"), "s1-eth0");
        assert_eq!(
            shown("\u{202e}gnp.exe\n\0"),
            "\u{fffd}gnp.exe\u{fffd}\u{fffd}"
        );
        assert_eq!(shown(&"ü".repeat(64)), "ü".repeat(64));
        assert_eq!(shown(&"ü".repeat(65)), format!("{}…", "ü".repeat(63)));
        assert_eq!(cut("שלום", 3), "של…");
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(
            xml("<script a=\"b\" c='d'>&"),
            "&lt;script a=&quot;b&quot; c=&#39;d&#39;&gt;&amp;"
        );
    }

    #[test]
    fn no_name_ends_a_string_of_dot() {
        assert_eq!(dot(r#"a"]; b\"#), r#"a\"]; b\\"#);
        assert_eq!(dot(r"\N &quot;"), r"\\N &amp;quot;");
    }
}
