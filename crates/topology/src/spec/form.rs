//! The text forms of named topologies: their sizes, and the sizes' names and bounds.

/// The text form of a named topology.
pub(super) struct Form<T> {
    /// The name at the start of the text.
    pub name: &'static str,
    /// The whole text, for errors.
    pub usage: &'static str,
    pub parameters: &'static [Parameter],
    /// Creates the topology with these sizes, one for each parameter.
    pub create: fn(&[u32]) -> T,
}

/// A size of a topology.
pub(super) struct Parameter {
    name: &'static str,
    /// The default value; `None` if it is required.
    default: Option<u32>,
    least: u32,
    most: u32,
    /// Whether only even values are valid.
    is_even: bool,
}

pub(super) const fn parameter(
    name: &'static str,
    default: Option<u32>,
    least: u32,
    most: u32,
) -> Parameter {
    Parameter {
        name,
        default,
        least,
        most,
        is_even: false,
    }
}

pub(super) const fn even(parameter: Parameter) -> Parameter {
    Parameter {
        is_even: true,
        ..parameter
    }
}

/// The bound of a size without a separate one: only the extent of the whole topology is limited.
pub(super) const ANY: u32 = u32::MAX;

impl<T> Form<T> {
    /// Creates the topology with these sizes, given in order or by name: `3,depth=2`.
    pub fn read(&self, text: Option<&str>) -> Result<T, String> {
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
        Ok((self.create)(&sizes))
    }

    /// Checks the sizes, and returns the problem if they are invalid.
    pub fn check(&self, sizes: &[u32]) -> Result<(), String> {
        let mut each = self.parameters.iter().zip(sizes);
        each.try_for_each(|(parameter, &size)| parameter.check(size))
    }

    /// Returns the index of the parameter that a part of the text specifies, and its size.
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
