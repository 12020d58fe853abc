//! Topologies by name.

use super::builder;
use super::file::{self, PlanError};
use super::form::{self, FORMS, Form};
use super::plan::Plan;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The most switches that a plan may have.
pub const MAX_SWITCHES: usize = 10_000;

/// The most hosts that a plan may have.
pub const MAX_HOSTS: usize = 100_000;

/// The most full-duplex links between switches that a plan may have.
pub const MAX_LINKS: usize = 100_000;

/// A topology by its name and size, as on the command line of `mn --topo`: `tree,depth=3,fanout=3`.
///
/// Sizes may be given in order or by name, and those left out are Mininet's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TopologySpec {
    /// `single,N`: one switch with `N` hosts.
    Single {
        /// How many hosts there are: Mininet's `k`, 2 if left out.
        hosts: u32,
    },
    /// `linear,N[,HOSTS]`: `N` switches in a line.
    Linear {
        /// How many switches there are: Mininet's `k`, 2 if left out.
        switches: u32,
        /// How many hosts each has: Mininet's `n`, 1 if left out.
        hosts: u32,
    },
    /// `tree,depth=D,fanout=F`: a tree with hosts as its leaves.
    Tree {
        /// How many levels of switches there are; 1 if left out.
        depth: u32,
        /// How many switches, or hosts, are below each; 2 if left out.
        fanout: u32,
    },
    /// `torus,X,Y[,HOSTS]`: a grid whose opposite edges are joined.
    Torus {
        /// The first dimension, 3 to 255.
        x: u32,
        /// The second dimension, 3 to 255.
        y: u32,
        /// How many hosts each switch has: Mininet's `n`, 1 if left out.
        hosts: u32,
    },
    /// `fattree,K`: a fat tree of switches with `K` ports each, an even number.
    FatTree {
        /// How many ports each switch has.
        k: u32,
    },
    /// `ring,N`: `N` switches in a ring, 3 or more, with a host each.
    Ring {
        /// How many switches there are.
        switches: u32,
    },
    /// `mesh,N`: `N` switches, each linked to each, with a host each.
    Mesh {
        /// How many switches there are.
        switches: u32,
    },
    /// `file:PATH`, or a path with a `/` or that ends in `.toml`: what a file says.
    File(PathBuf),
}

/// Why there is no such topology.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// There is no topology of this name.
    #[error(
        "'{text}' is not a topology; expected {}; or file:PATH",
        form::usages()
    )]
    Unknown {
        /// What was given.
        text: String,
    },
    /// The sizes are not such as the topology has.
    #[error("'{text}' is not a topology: {problem}; expected {usage}")]
    Parameters {
        /// What was given.
        text: String,
        /// What is wrong.
        problem: String,
        /// The right form.
        usage: &'static str,
    },
    /// The topology would be larger than one can be.
    #[error(
        "'{spec}' is too large: it has {switches} switches, {hosts} hosts and {links} links; expected at most \
         {MAX_SWITCHES}, {MAX_HOSTS} and {MAX_LINKS}"
    )]
    TooLarge {
        /// The topology.
        spec: TopologySpec,
        /// How many switches it would have.
        switches: u128,
        /// How many hosts it would have.
        hosts: u128,
        /// How many full-duplex links between switches it would have.
        links: u128,
    },
    /// The file cannot be read.
    #[error("cannot read the topology {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file does not describe a network.
    #[error("{}:{source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Where, and what was expected.
        source: PlanError,
    },
}

impl TopologySpec {
    /// What the network is to be built of.
    ///
    /// This reads the file of a [`TopologySpec::File`], and nothing else.
    ///
    /// # Errors
    /// [`SpecError`]: sizes that there cannot be, or a file that cannot be read or does not describe a network.
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
            Self::File(ref path) => return file::read(path),
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

    /// How many switches, hosts, and links between switches there are; not of a file.
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

    /// The form in which it is written, and its sizes; none for a file.
    fn form(&self) -> Option<(&'static Form, Vec<u32>)> {
        Some(match *self {
            Self::Single { hosts } => (&form::SINGLE, vec![hosts]),
            Self::Linear { switches, hosts } => (&form::LINEAR, vec![switches, hosts]),
            Self::Tree { depth, fanout } => (&form::TREE, vec![depth, fanout]),
            Self::Torus { x, y, hosts } => (&form::TORUS, vec![x, y, hosts]),
            Self::FatTree { k } => (&form::FATTREE, vec![k]),
            Self::Ring { switches } => (&form::RING, vec![switches]),
            Self::Mesh { switches } => (&form::MESH, vec![switches]),
            Self::File(_) => return None,
        })
    }
}

impl FromStr for TopologySpec {
    type Err = SpecError;

    /// Reads a name and sizes. Sizes that there cannot be are refused here already; a file is not read yet.
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

/// The path of the file that a text names, if it names one.
fn path_in(text: &str) -> Option<&str> {
    let is_path = text.contains('/') || text.ends_with(".toml");
    let path = text.strip_prefix("file:").or(is_path.then_some(text));
    path.filter(|path| !path.is_empty())
}

/// As it is read.
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
    fn refusals_say_what_was_expected() {
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
    fn what_is_said_to_be_too_large_is_what_it_would_be() {
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
