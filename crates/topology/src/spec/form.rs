//! The text forms of named topologies: their sizes, and the sizes' names and bounds.

use super::topology_spec::TopologySpec;

/// The text form of a named topology.
pub(super) struct Form {
    /// The name at the start of the text.
    pub name: &'static str,
    /// The whole text, for errors.
    pub usage: &'static str,
    parameters: &'static [Parameter],
    /// Creates the specification with these sizes, one for each parameter.
    spec: fn(&[u32]) -> TopologySpec,
}

/// A size of a topology.
struct Parameter {
    name: &'static str,
    /// The default value; `None` if it is required.
    default: Option<u32>,
    least: u32,
    most: u32,
    /// Accepts only even values.
    is_even: bool,
}

const fn parameter(name: &'static str, default: Option<u32>, least: u32, most: u32) -> Parameter {
    Parameter {
        name,
        default,
        least,
        most,
        is_even: false,
    }
}

const fn even(parameter: Parameter) -> Parameter {
    Parameter {
        is_even: true,
        ..parameter
    }
}

/// No bound of its own: only the extent of the whole topology is bounded.
const ANY: u32 = u32::MAX;

pub(super) static SINGLE: Form = Form {
    name: "single",
    usage: "single,N",
    parameters: &[parameter("k", Some(2), 1, ANY)],
    spec: |sizes| TopologySpec::Single { hosts: sizes[0] },
};

pub(super) static LINEAR: Form = Form {
    name: "linear",
    usage: "linear,N[,HOSTS]",
    parameters: &[
        parameter("k", Some(2), 1, ANY),
        parameter("n", Some(1), 0, ANY),
    ],
    spec: |sizes| TopologySpec::Linear {
        switches: sizes[0],
        hosts: sizes[1],
    },
};

pub(super) static TREE: Form = Form {
    name: "tree",
    usage: "tree,depth=D,fanout=F",
    parameters: &[
        parameter("depth", Some(1), 1, 64),
        parameter("fanout", Some(2), 1, ANY),
    ],
    spec: |sizes| TopologySpec::Tree {
        depth: sizes[0],
        fanout: sizes[1],
    },
};

pub(super) static TORUS: Form = Form {
    name: "torus",
    usage: "torus,X,Y[,HOSTS]",
    parameters: &[
        parameter("x", None, 3, 255),
        parameter("y", None, 3, 255),
        parameter("n", Some(1), 0, ANY),
    ],
    spec: |sizes| TopologySpec::Torus {
        x: sizes[0],
        y: sizes[1],
        hosts: sizes[2],
    },
};

pub(super) static FATTREE: Form = Form {
    name: "fattree",
    usage: "fattree,K",
    parameters: &[even(parameter("k", None, 2, ANY))],
    spec: |sizes| TopologySpec::FatTree { k: sizes[0] },
};

pub(super) static RING: Form = Form {
    name: "ring",
    usage: "ring,N",
    parameters: &[parameter("n", None, 3, ANY)],
    spec: |sizes| TopologySpec::Ring { switches: sizes[0] },
};

pub(super) static MESH: Form = Form {
    name: "mesh",
    usage: "mesh,N",
    parameters: &[parameter("n", None, 1, ANY)],
    spec: |sizes| TopologySpec::Mesh { switches: sizes[0] },
};

/// All forms, in the order in which errors list them.
pub(super) static FORMS: [&Form; 7] = [&SINGLE, &LINEAR, &TREE, &TORUS, &FATTREE, &RING, &MESH];

/// Returns the usage texts of all forms.
pub(super) fn usages() -> String {
    FORMS.map(|form| form.usage).join("; ")
}

impl Form {
    /// Reads the specification with these sizes, in order or by name: `3,depth=2`.
    pub fn read(&self, text: Option<&str>) -> Result<TopologySpec, String> {
        let mut sizes = vec![None; self.parameters.len()];
        let parts = text.into_iter().flat_map(|text| text.split(','));
        for (place, part) in parts.enumerate() {
            let (place, value) = self.place_of(place, part)?;
            if sizes[place].replace(value).is_some() {
                return Err(format!("{} is given twice", self.parameters[place].name));
            }
        }
        let with_defaults = self.parameters.iter().zip(sizes).map(|(parameter, size)| {
            size.or(parameter.default)
                .ok_or_else(|| format!("{} is missing", parameter.name))
        });
        let sizes = with_defaults.collect::<Result<Vec<_>, _>>()?;
        self.check(&sizes)?;
        Ok((self.spec)(&sizes))
    }

    /// Checks the sizes. Returns the reason if they are invalid.
    pub fn check(&self, sizes: &[u32]) -> Result<(), String> {
        let mut each = self.parameters.iter().zip(sizes);
        each.try_for_each(|(parameter, &size)| parameter.check(size))
    }

    /// Returns the index of the parameter that a part of the text is for, and the size that it gives.
    fn place_of(&self, place: usize, part: &str) -> Result<(usize, u32), String> {
        let (place, value) = match part.split_once('=') {
            Some((name, value)) => (self.place_named(name)?, value),
            None if place < self.parameters.len() => (place, part),
            None => return Err(format!("'{part}' is one size too many")),
        };
        let number = || format!("'{value}' is not a number from 0 to {}", u32::MAX);
        Ok((place, value.parse().map_err(|_| number())?))
    }

    fn place_named(&self, name: &str) -> Result<usize, String> {
        let mut names = self.parameters.iter().map(|parameter| parameter.name);
        let place = names.clone().position(|known| known == name);
        place.ok_or_else(|| {
            let known = names.by_ref().collect::<Vec<_>>().join(" and ");
            format!("'{name}' is not one of its sizes, {known}")
        })
    }
}

impl Parameter {
    fn check(&self, size: u32) -> Result<(), String> {
        let &Self {
            name,
            least,
            most,
            is_even,
            ..
        } = self;
        if is_even && size % 2 != 0 {
            return Err(format!("{name} is {size}, which is not even"));
        }
        if (least..=most).contains(&size) {
            return Ok(());
        }
        Err(match most {
            ANY => format!("{name} is {size}, which is less than {least}"),
            most => format!("{name} is {size}, which is not from {least} to {most}"),
        })
    }
}
