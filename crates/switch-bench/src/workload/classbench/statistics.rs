//! Statistics of the published rule sets.

/// The table; its head names the columns.
const TABLE: &str = include_str!("statistics.txt");

/// The class of a rule's range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortClass {
    /// Any port.
    Any,
    /// 1024 to 65535.
    High,
    /// 0 to 1023.
    Low,
    /// A single port.
    Exact,
    /// Any other range.
    Range,
}

/// The fields of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub protocol: Option<u8>,
    pub src_ports: PortClass,
    pub dst_ports: PortClass,
    pub src_length: u8,
    pub dst_length: u8,
}

/// The counts of one side's prefixes.
#[derive(Clone, Debug, Default)]
pub struct PrefixCounts {
    /// The share of distinct prefixes that lie inside another of at least one bit.
    pub inside: f64,
    /// The number of distinct prefixes of each length, shortest first.
    pub by_length: Vec<(u8, u32)>,
}

/// The statistics of one set.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// The number of rules.
    pub rules: u32,
    /// The number of different sets of masks, with port ranges as prefixes.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "what tests compare a drawn set with")
    )]
    pub mask_sets: u32,
    pub src: PrefixCounts,
    pub dst: PrefixCounts,
    /// The most common single ports.
    pub exact: Vec<(u16, u32)>,
    /// The most common ranges.
    pub ranges: Vec<((u16, u16), u32)>,
    /// The most common shapes.
    pub joint: Vec<(Shape, u32)>,
}

impl Statistics {
    /// Returns the statistics of the instance of this kind and size.
    ///
    /// # Panics
    /// If the table lacks it, or has an invalid line; tests read the whole table.
    pub fn of(kind: &str, size: &str) -> Self {
        let begins = |line: &&str| line.starts_with(&format!("set {kind} {size} "));
        let mut lines = TABLE.lines().skip_while(|line| !begins(line));
        let head = lines.next().expect("the table has every kind and size");
        let mut counts = head.split(' ').skip(3).map(number);
        let mut statistics = Self {
            rules: counts.next().expect("a number of rules"),
            mask_sets: counts.next().expect("a number of mask sets"),
            ..Self::default()
        };
        for line in lines.take_while(|line| !line.starts_with("set ")) {
            statistics.take(line);
        }
        statistics
    }

    fn take(&mut self, line: &str) {
        let mut words = line.split(' ');
        match words.next() {
            Some("src") => self.src = prefix_counts(words),
            Some("dst") => self.dst = prefix_counts(words),
            Some("exact") => self.exact = words.map(|word| pair(word, ':')).collect(),
            Some("range") => self.ranges = words.map(range).collect(),
            Some("joint") => self.joint.extend(shapes(words)),
            _ => assert!(line.is_empty(), "'{line}' begins with no known word"),
        }
    }

    /// Returns the share of single ports, in 1,000, that are among the most common ones.
    pub fn exact_permille(&self) -> u32 {
        let of_shape = |shape: &Shape| {
            u32::from(shape.src_ports == PortClass::Exact)
                + u32::from(shape.dst_ports == PortClass::Exact)
        };
        let joint = self.joint.iter();
        let all: u32 = joint.map(|(shape, count)| of_shape(shape) * count).sum();
        let common: u32 = self.exact.iter().map(|(_, count)| count).sum();
        (common * 1000).checked_div(all).unwrap_or(0).min(1000)
    }
}

fn prefix_counts<'a>(mut words: impl Iterator<Item = &'a str>) -> PrefixCounts {
    let inside = words.next().and_then(|word| word.parse().ok());
    PrefixCounts {
        inside: inside.expect("a share"),
        by_length: words.map(|word| pair(word, ':')).collect(),
    }
}

fn range(word: &str) -> ((u16, u16), u32) {
    let (range, count) = word.split_once(':').expect("a count");
    (pair(range, '-'), number(count))
}

fn shapes<'a>(mut words: impl Iterator<Item = &'a str>) -> impl Iterator<Item = (Shape, u32)> {
    let protocol = match words.next() {
        Some("-") => None,
        other => Some(number(other.expect("a protocol"))),
    };
    let mut class = || class(words.next().expect("a class of ports"));
    let (src_ports, dst_ports) = (class(), class());
    words.map(move |word| {
        let (lengths, count) = word.split_once(':').expect("a count");
        let (src_length, dst_length) = pair(lengths, '/');
        let shape = Shape {
            protocol,
            src_ports,
            dst_ports,
            src_length,
            dst_length,
        };
        (shape, number(count))
    })
}

fn class(word: &str) -> PortClass {
    match word {
        "any" => PortClass::Any,
        "high" => PortClass::High,
        "low" => PortClass::Low,
        "exact" => PortClass::Exact,
        "range" => PortClass::Range,
        other => panic!("'{other}' is no class of ports"),
    }
}

fn pair<A: TryFrom<u32>, B: TryFrom<u32>>(word: &str, between: char) -> (A, B) {
    let (one, other) = word.split_once(between).expect("two numbers");
    (number(one), number(other))
}

fn number<T: TryFrom<u32>>(word: &str) -> T {
    let number: Option<u32> = word.parse().ok();
    let number = number.and_then(|number| number.try_into().ok());
    number.unwrap_or_else(|| panic!("'{word}' is no number that fits"))
}
