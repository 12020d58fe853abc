//! Topologies by name.

use super::builder;
use super::file::{self, FileError, PlanError};
use super::form::{ANY, Form, even, parameter};
use super::plan::{MAX_HOSTS, MAX_LINKS, MAX_SWITCHES, Plan};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A topology, specified by its name and size as on the command line of `mn --topo`: `tree,depth=3,fanout=3`.
///
/// Sizes may be given in order or by name; the defaults are Mininet's.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TopologySpec {
    /// `single,N`: one switch with `N` hosts.
    Single {
        /// The number of hosts: Mininet's `k`, 2 by default.
        hosts: u32,
    },
    /// `linear,N[,HOSTS]`: `N` switches in a line.
    Linear {
        /// The number of switches: Mininet's `k`, 2 by default.
        switches: u32,
        /// The number of hosts of each switch: Mininet's `n`, 1 by default.
        hosts: u32,
    },
    /// `tree,depth=D,fanout=F`: a tree with hosts as its leaves.
    Tree {
        /// The number of levels of switches; 1 by default.
        depth: u32,
        /// The number of switches or hosts below each switch; 2 by default.
        fanout: u32,
    },
    /// `torus,X,Y[,HOSTS]`: a grid whose opposite edges are joined.
    Torus {
        /// The first dimension, 3 to 255.
        x: u32,
        /// The second dimension, 3 to 255.
        y: u32,
        /// The number of hosts of each switch: Mininet's `n`, 1 by default.
        hosts: u32,
    },
    /// `fattree,K`: a fat tree of switches with `K` ports each, which must be even.
    FatTree {
        /// The number of ports of each switch.
        k: u32,
    },
    /// `ring,N`: `N` switches in a ring, at least 3, with a host each.
    Ring {
        /// The number of switches.
        switches: u32,
    },
    /// `mesh,N`: `N` switches, all linked to each other, with a host each.
    Mesh {
        /// The number of switches.
        switches: u32,
    },
    /// `file:PATH`, or a path that contains `/` or ends in `.toml`: a network described in a file.
    File(PathBuf),
}

/// The reason why a topology is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No topology has this name.
    #[error("'{text}' is not a topology; expected {}; or file:PATH", usages())]
    Unknown {
        /// The given text.
        text: String,
    },
    /// The sizes are invalid for this topology.
    #[error("'{text}' is not a topology: {problem}; expected {usage}")]
    Parameters {
        /// The given text.
        text: String,
        /// The problem.
        problem: String,
        /// The expected form.
        usage: &'static str,
    },
    /// The topology exceeds the maximum size.
    #[error(
        "'{spec}' is too large: it has {switches} switches, {hosts} hosts and {links} links; expected at most \
         {MAX_SWITCHES}, {MAX_HOSTS} and {MAX_LINKS}"
    )]
    TooLarge {
        /// The topology.
        spec: TopologySpec,
        /// The number of switches that it would have.
        switches: u128,
        /// The number of hosts that it would have.
        hosts: u128,
        /// The number of full-duplex links between switches that it would have.
        links: u128,
    },
    /// The file cannot be read.
    #[error("cannot read the topology {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file does not describe a network.
    #[error("{}:{source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The position, and the expected input.
        source: PlanError,
    },
}

impl TopologySpec {
    /// Returns the network's plan.
    ///
    /// Reads a file only for a [`TopologySpec::File`].
    ///
    /// # Errors
    /// [`SpecError`] if sizes are invalid, or a file cannot be read or does not describe a network.
    pub fn plan(&self) -> Result<Plan, SpecError> {
        self.check()?;
        Ok(match *self {
            Self::Single { hosts } => builder::single(hosts),
            Self::Linear { switches, hosts } => builder::line(switches, hosts),
            Self::Tree { depth, fanout } => builder::tree(depth, fanout),
            Self::Torus { x, y, hosts } => builder::torus(x, y, hosts),
            Self::FatTree { k } => builder::fat_tree(k),
            Self::Ring { switches } => builder::ring(switches),
            Self::Mesh { switches } => builder::mesh(switches),
            Self::File(ref path) => return read(path),
        })
    }

    fn check(&self) -> Result<(), SpecError> {
        let Some((form, sizes)) = self.form() else {
            return Ok(());
        };
        form.check(&sizes)
            .map_err(|problem| SpecError::Parameters {
                text: self.to_string(),
                problem,
                usage: form.usage,
            })?;
        self.check_extent()
    }

    fn check_extent(&self) -> Result<(), SpecError> {
        let (switches, hosts, links) = self.extent();
        let most = [MAX_SWITCHES, MAX_HOSTS, MAX_LINKS].map(|most| most as u128);
        if switches <= most[0] && hosts <= most[1] && links <= most[2] {
            return Ok(());
        }
        Err(SpecError::TooLarge {
            spec: self.clone(),
            switches,
            hosts,
            links,
        })
    }

    /// Returns the numbers of switches, hosts, and links between switches. Not for a file.
    fn extent(&self) -> (u128, u128, u128) {
        match self.clone() {
            Self::Single { hosts } => (1, hosts.into(), 0),
            Self::Linear { switches, hosts } => {
                let (switches, hosts) = (u128::from(switches), u128::from(hosts));
                (switches, switches * hosts, switches - 1)
            }
            Self::Tree { depth, fanout } => {
                let level = |level| u128::from(fanout).saturating_pow(level);
                let switches = (0..depth).map(level).fold(0, u128::saturating_add);
                (switches, level(depth), switches - 1)
            }
            Self::Torus { x, y, hosts } => {
                let switches = u128::from(x) * u128::from(y);
                (switches, switches * u128::from(hosts), switches * 2)
            }
            Self::FatTree { k } => {
                let k = u128::from(k);
                (k * k / 4 + k * k, k * k * k / 4, k * k * k / 2)
            }
            Self::Ring { switches } => (switches.into(), switches.into(), switches.into()),
            Self::Mesh { switches } => {
                let switches = u128::from(switches);
                (switches, switches, switches * (switches - 1) / 2)
            }
            Self::File(_) => (0, 0, 0),
        }
    }

    /// Returns its text form and its sizes; `None` for a file.
    fn form(&self) -> Option<(&'static Form<Self>, Vec<u32>)> {
        Some(match *self {
            Self::Single { hosts } => (&SINGLE, vec![hosts]),
            Self::Linear { switches, hosts } => (&LINEAR, vec![switches, hosts]),
            Self::Tree { depth, fanout } => (&TREE, vec![depth, fanout]),
            Self::Torus { x, y, hosts } => (&TORUS, vec![x, y, hosts]),
            Self::FatTree { k } => (&FATTREE, vec![k]),
            Self::Ring { switches } => (&RING, vec![switches]),
            Self::Mesh { switches } => (&MESH, vec![switches]),
            Self::File(_) => return None,
        })
    }
}

static SINGLE: Form<TopologySpec> = Form {
    name: "single",
    usage: "single,N",
    parameters: &[parameter("k", Some(2), 1, ANY)],
    create: |sizes| TopologySpec::Single { hosts: sizes[0] },
};

static LINEAR: Form<TopologySpec> = Form {
    name: "linear",
    usage: "linear,N[,HOSTS]",
    parameters: &[
        parameter("k", Some(2), 1, ANY),
        parameter("n", Some(1), 0, ANY),
    ],
    create: |sizes| TopologySpec::Linear {
        switches: sizes[0],
        hosts: sizes[1],
    },
};

static TREE: Form<TopologySpec> = Form {
    name: "tree",
    usage: "tree,depth=D,fanout=F",
    parameters: &[
        parameter("depth", Some(1), 1, 64),
        parameter("fanout", Some(2), 1, ANY),
    ],
    create: |sizes| TopologySpec::Tree {
        depth: sizes[0],
        fanout: sizes[1],
    },
};

static TORUS: Form<TopologySpec> = Form {
    name: "torus",
    usage: "torus,X,Y[,HOSTS]",
    parameters: &[
        parameter("x", None, 3, 255),
        parameter("y", None, 3, 255),
        parameter("n", Some(1), 0, ANY),
    ],
    create: |sizes| TopologySpec::Torus {
        x: sizes[0],
        y: sizes[1],
        hosts: sizes[2],
    },
};

static FATTREE: Form<TopologySpec> = Form {
    name: "fattree",
    usage: "fattree,K",
    parameters: &[even(parameter("k", None, 2, ANY))],
    create: |sizes| TopologySpec::FatTree { k: sizes[0] },
};

static RING: Form<TopologySpec> = Form {
    name: "ring",
    usage: "ring,N",
    parameters: &[parameter("n", None, 3, ANY)],
    create: |sizes| TopologySpec::Ring { switches: sizes[0] },
};

static MESH: Form<TopologySpec> = Form {
    name: "mesh",
    usage: "mesh,N",
    parameters: &[parameter("n", None, 1, ANY)],
    create: |sizes| TopologySpec::Mesh { switches: sizes[0] },
};

/// All forms, in the order in which errors list them.
static FORMS: [&Form<TopologySpec>; 7] = [&SINGLE, &LINEAR, &TREE, &TORUS, &FATTREE, &RING, &MESH];

/// Returns the usage texts of all forms.
fn usages() -> String {
    FORMS.map(|form| form.usage).join("; ")
}

impl FromStr for TopologySpec {
    type Err = SpecError;

    /// Parses a name and sizes, and refuses invalid sizes. A file is not read yet.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        if let Some(path) = path_in(text) {
            return Ok(Self::File(path.into()));
        }
        let (name, sizes) = match text.split_once(',') {
            Some((name, sizes)) => (name, Some(sizes)),
            None => (text, None),
        };
        let form = FORMS.into_iter().find(|form| form.name == name);
        let unknown = || SpecError::Unknown {
            text: text.to_owned(),
        };
        let form = form.ok_or_else(unknown)?;
        let spec = form.read(sizes).map_err(|problem| SpecError::Parameters {
            text: text.to_owned(),
            problem,
            usage: form.usage,
        })?;
        spec.check_extent()?;
        Ok(spec)
    }
}

fn read(path: &Path) -> Result<Plan, SpecError> {
    file::read(path).map_err(|error| match error {
        FileError::Read(source) => SpecError::Read {
            path: path.into(),
            source,
        },
        FileError::Content(source) => SpecError::File {
            path: path.into(),
            source,
        },
    })
}

/// Returns the path of the file, if the text specifies one.
fn path_in(text: &str) -> Option<&str> {
    let is_path = text.contains('/') || text.ends_with(".toml");
    let path = text.strip_prefix("file:").or(is_path.then_some(text));
    path.filter(|path| !path.is_empty())
}

/// Writes the form that `from_str` parses.
impl fmt::Display for TopologySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single { hosts } => write!(f, "single,{hosts}"),
            Self::Linear { switches, hosts: 1 } => write!(f, "linear,{switches}"),
            Self::Linear { switches, hosts } => write!(f, "linear,{switches},{hosts}"),
            Self::Tree { depth, fanout } => write!(f, "tree,depth={depth},fanout={fanout}"),
            Self::Torus { x, y, hosts: 1 } => write!(f, "torus,{x},{y}"),
            Self::Torus { x, y, hosts } => write!(f, "torus,{x},{y},{hosts}"),
            Self::FatTree { k } => write!(f, "fattree,{k}"),
            Self::Ring { switches } => write!(f, "ring,{switches}"),
            Self::Mesh { switches } => write!(f, "mesh,{switches}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        match text.parse::<TopologySpec>() {
            Ok(spec) => panic!("{text} was taken for {spec:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn sizes_are_read_in_order_and_by_name() {
        let tree = TopologySpec::Tree {
            depth: 3,
            fanout: 2,
        };
        for text in [
            "tree,3,2",
            "tree,depth=3,fanout=2",
            "tree,fanout=2,depth=3",
            "tree,3",
            "tree,depth=3",
        ] {
            assert_eq!(text.parse::<TopologySpec>().unwrap(), tree, "{text}");
        }
        let linear = TopologySpec::Linear {
            switches: 4,
            hosts: 3,
        };
        for text in ["linear,4,3", "linear,k=4,n=3", "linear,4,n=3"] {
            assert_eq!(text.parse::<TopologySpec>().unwrap(), linear, "{text}");
        }
    }

    #[test]
    fn mininets_sizes_are_the_default() {
        assert_eq!(
            "single".parse::<TopologySpec>().unwrap(),
            TopologySpec::Single { hosts: 2 }
        );
        assert_eq!(
            "linear".parse::<TopologySpec>().unwrap(),
            TopologySpec::Linear {
                switches: 2,
                hosts: 1
            }
        );
        assert_eq!(
            "tree".parse::<TopologySpec>().unwrap(),
            TopologySpec::Tree {
                depth: 1,
                fanout: 2
            }
        );
        assert_eq!(
            "torus,3,4".parse::<TopologySpec>().unwrap(),
            TopologySpec::Torus {
                x: 3,
                y: 4,
                hosts: 1
            }
        );
    }

    #[test]
    fn specs_print_as_they_are_read() {
        for text in [
            "single,3",
            "linear,4",
            "linear,4,0",
            "linear,4,2",
            "tree,depth=3,fanout=3",
            "torus,3,5",
            "torus,3,5,2",
            "fattree,16",
            "ring,9",
            "mesh,1",
            "file:net.toml",
            "file:ring",
        ] {
            assert_eq!(text.parse::<TopologySpec>().unwrap().to_string(), text);
        }
        for path in ["nets/ring", "ring.toml"] {
            assert_eq!(
                path.parse::<TopologySpec>().unwrap(),
                TopologySpec::File(path.into())
            );
        }
    }

    #[test]
    fn errors_name_the_expected_input() {
        let tree = "expected tree,depth=D,fanout=F";
        for (text, sentence) in [
            (
                "star,3",
                "'star,3' is not a topology; expected single,N; linear,N[,HOSTS]; tree,depth=D,fanout=F; \
                 torus,X,Y[,HOSTS]; fattree,K; ring,N; mesh,N; or file:PATH",
            ),
            (
                "tree,3,x",
                &format!(
                    "'tree,3,x' is not a topology: 'x' is not a number from 0 to 4294967295; {tree}"
                ),
            ),
            (
                "tree,-1",
                &format!(
                    "'tree,-1' is not a topology: '-1' is not a number from 0 to 4294967295; {tree}"
                ),
            ),
            (
                "tree,",
                &format!(
                    "'tree,' is not a topology: '' is not a number from 0 to 4294967295; {tree}"
                ),
            ),
            (
                "tree,1,2,3",
                &format!("'tree,1,2,3' is not a topology: '3' is one size too many; {tree}"),
            ),
            (
                "tree,width=3",
                &format!(
                    "'tree,width=3' is not a topology: 'width' is not one of its sizes, depth and fanout; {tree}"
                ),
            ),
            (
                "tree,3,depth=3",
                &format!("'tree,3,depth=3' is not a topology: depth is given twice; {tree}"),
            ),
            (
                "tree,0",
                &format!(
                    "'tree,0' is not a topology: depth is 0, which is not from 1 to 64; {tree}"
                ),
            ),
            (
                "ring",
                "'ring' is not a topology: n is missing; expected ring,N",
            ),
            (
                "ring,2",
                "'ring,2' is not a topology: n is 2, which is less than 3; expected ring,N",
            ),
            (
                "fattree,5",
                "'fattree,5' is not a topology: k is 5, which is not even; expected fattree,K",
            ),
            (
                "torus,256,3",
                "'torus,256,3' is not a topology: x is 256, which is not from 3 to 255; expected torus,X,Y[,HOSTS]",
            ),
        ] {
            assert_eq!(refusal(text), sentence);
        }
    }

    #[test]
    fn absurd_sizes_are_refused_at_once() {
        assert_eq!(
            refusal("tree,depth=9,fanout=9"),
            "'tree,depth=9,fanout=9' is too large: it has 48427561 switches, 387420489 hosts and 48427560 links; \
             expected at most 10000, 100000 and 100000"
        );
        for text in [
            "tree,64,4294967295",
            "single,4294967295",
            "linear,4294967295,4294967295",
            "fattree,4294967294",
            "torus,255,255,4294967295",
            "ring,4294967295",
            "mesh,4294967295",
            "mesh,1000",
        ] {
            assert!(refusal(text).contains("too large"), "{text}");
        }
        let direct = TopologySpec::Ring { switches: 1 }.plan();
        assert!(direct.unwrap_err().to_string().contains("less than 3"));
    }

    #[test]
    fn extents_equal_the_plans() {
        for text in [
            "single,5",
            "linear,4,3",
            "tree,3,4",
            "torus,3,4,2",
            "fattree,6",
            "ring,5",
            "mesh,7",
        ] {
            let spec: TopologySpec = text.parse().unwrap();
            let plan = spec.plan().unwrap();
            let extent = [plan.switches.len(), plan.hosts.len(), plan.links.len()]
                .map(|count| count as u128);
            assert_eq!(<[u128; 3]>::from(spec.extent()), extent, "{text}");
        }
    }
}
