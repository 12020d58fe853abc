//! The blocks of a guide that a reader would execute: `console`, with `$ ` before commands and their output below, and
//! `sh`.
//!
//! A comment in the line before a block marks it: `<!-- not run: REASON -->`, `<!-- output varies -->`, which compares
//! only exit statuses, or `<!-- status 1 -->`, with which each of its commands must end.

/// A block.
#[derive(Debug, PartialEq)]
pub struct Block {
    pub line: usize,
    /// Why it is not run, if it is not.
    pub not_run: Option<String>,
    /// Whether its commands' output varies.
    pub varies: bool,
    /// The status with which its commands end.
    pub status: i32,
    pub steps: Vec<Step>,
}

/// A command with its continuation lines, and the output in the guide.
#[derive(Debug, PartialEq)]
pub struct Step {
    pub command: String,
    pub shown: String,
}

/// Returns the blocks of a guide.
///
/// # Panics
/// If a block of `console` does not start with a command, or a comment is not one of the three.
pub fn blocks(guide: &str) -> Vec<Block> {
    let lines: Vec<&str> = guide.lines().collect();
    let starts = lines.iter().enumerate();
    let starts = starts.filter(|(_, line)| matches!(**line, "```console" | "```sh"));
    starts
        .map(|(start, fence)| {
            let body = &lines[start + 1..];
            let end = body.iter().position(|line| *line == "```");
            let body = &body[..end.expect("a block ends")];
            let mut block = Block {
                line: start + 1,
                not_run: None,
                varies: false,
                status: 0,
                steps: steps(body, if *fence == "```sh" { "" } else { "$ " }),
            };
            if let Some(comment) = start.checked_sub(1).and_then(|line| comment(lines[line])) {
                block.note(comment);
            }
            block
        })
        .collect()
}

fn comment(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- ")?.strip_suffix(" -->")
}

impl Block {
    /// Returns a block with one command that ends with status 0.
    pub fn of(step: Step) -> Self {
        Self {
            line: 0,
            not_run: None,
            varies: false,
            status: 0,
            steps: vec![step],
        }
    }

    fn note(&mut self, comment: &str) {
        if let Some(reason) = comment.strip_prefix("not run: ") {
            self.not_run = Some(reason.into());
        } else if let Some(status) = comment.strip_prefix("status ") {
            self.status = status.parse().expect("a status is a number");
        } else {
            assert_eq!(comment, "output varies", "line {}", self.line);
            self.varies = true;
        }
    }
}

fn steps(body: &[&str], prompt: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for line in body {
        match (line.strip_prefix(prompt), steps.last_mut()) {
            (_, Some(step)) if goes_on => step.command += &format!("\n{line}"),
            (Some(command), _) => steps.push(Step {
                command: command.into(),
                shown: String::new(),
            }),
            (None, Some(step)) => {
                step.shown += &format!("{line}\n");
                continue;
            }
            (None, None) => panic!("expected a line that begins with '{prompt}', found '{line}'"),
        }
        goes_on = line.ends_with('\\');
    }
    steps
}

/// Returns `true` if `printed` matches `shown`, in which `…` stands for any text. Blanks at the end of lines are
/// ignored.
pub fn is_shown(printed: &str, shown: &str) -> bool {
    let printed = trimmed(printed);
    let shown = trimmed(shown);
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn trimmed(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_end());
    lines.collect::<Vec<_>>().join("\n").trim_end().into()
}

#[test]
fn blocks_are_found_with_their_comments() {
    let guide = "\
# A guide
```console
$ urtica run l2 \\
    --listen ptcp:6653
$ curl localhost
first
second
```
<!-- not run: needs a rack -->
```sh
make
cd target
```
```toml
a = 1
```
<!-- output varies -->
```console
$ date
```
<!-- status 1 -->
```console
$ false
```
";
    let found = blocks(guide);
    let step = |command: &str, shown: &str| Step {
        command: command.into(),
        shown: shown.into(),
    };
    let commands = [
        step("urtica run l2 \\\n    --listen ptcp:6653", ""),
        step("curl localhost", "first\nsecond\n"),
    ];
    assert_eq!(found.len(), 4);
    assert_eq!((found[0].line, &found[0].steps[..]), (2, &commands[..]));
    assert_eq!(found[1].not_run.as_deref(), Some("needs a rack"));
    assert_eq!(found[1].steps, [step("make", ""), step("cd target", "")]);
    let others: Vec<_> = found
        .iter()
        .map(|block| (block.varies, block.status))
        .collect();
    assert_eq!(others, [(false, 0), (false, 0), (true, 0), (false, 1)]);
}

#[test]
#[should_panic(expected = "expected a line that begins with '$ '")]
fn a_block_without_a_command_is_refused() {
    blocks("```console\noutput\n```\n");
}

#[test]
fn an_ellipsis_stands_for_anything() {
    for (printed, shown) in [
        ("one\n", "one"),
        ("one  \ntwo\n", "one\ntwo\n"),
        ("one\ntwo\nthree\n", "one\n…\nthree"),
        ("port 3 added", "port … added"),
        ("anything", "…"),
    ] {
        assert!(is_shown(printed, shown), "{printed:?} {shown:?}");
    }
    for (printed, shown) in [
        ("one\ntwo", "one"),
        ("one", "one\n…\nthree"),
        ("port 3 removed", "port … added"),
        ("a b", "…b…a…"),
    ] {
        assert!(!is_shown(printed, shown), "{printed:?} {shown:?}");
    }
}
