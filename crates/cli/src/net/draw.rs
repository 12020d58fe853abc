//! `urtica net --draw`: a drawing of the network, instead of the network.

use crate::say::{PipedOutput, say};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use urtica_topology::draw::{Network, Picture};
use urtica_topology::spec::{Plan, TopologySpec};

/// A drawing to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Drawing {
    /// DOT, to standard output.
    Print,
    /// To a file, in the format of its extension.
    File(PathBuf, Format),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Svg,
    Dot,
    Json,
}

/// An error of drawing a network.
#[derive(Debug, thiserror::Error)]
pub(super) enum DrawError {
    #[error("cannot write to standard output: {0}")]
    Print(std::io::Error),
    #[error("cannot write {}: {error}; expected a file in a directory that can be written to", .path.display())]
    Write {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("cannot write the drawing as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl FromStr for Drawing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "-" {
            return Ok(Self::Print);
        }
        let path = PathBuf::from(text);
        let extension = path
            .extension()
            .map(|extension| extension.to_ascii_lowercase());
        let format = match extension.as_ref().and_then(|extension| extension.to_str()) {
            Some("svg") => Format::Svg,
            Some("dot" | "gv") => Format::Dot,
            Some("json") => Format::Json,
            _ => {
                return Err(format!(
                    "'{text}' has no known extension; expected FILE.svg, FILE.dot or FILE.json, or - for DOT on standard output"
                ));
            }
        };
        Ok(Self::File(path, format))
    }
}

impl Drawing {
    /// Draws the network of a plan.
    pub fn write(&self, spec: &TopologySpec, plan: &Plan) -> Result<(), DrawError> {
        let network = Network::from(plan);
        match self {
            Self::Print => PipedOutput
                .write_all(network.to_dot().as_bytes())
                .and_then(|()| PipedOutput.flush())
                .map_err(DrawError::Print),
            Self::File(path, format) => {
                let written = fs::write(path, format.text(&network)?);
                written.map_err(|error| DrawError::Write {
                    path: path.clone(),
                    error,
                })?;
                say(format_args!("{spec}: drawn in {}", path.display()));
                Ok(())
            }
        }
    }
}

impl Format {
    fn text(self, network: &Network) -> Result<String, serde_json::Error> {
        Ok(match self {
            Self::Svg => Picture::new(network).to_svg(),
            Self::Dot => network.to_dot(),
            Self::Json => serde_json::to_string_pretty(&Picture::new(network))? + "\n",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_is_the_format() {
        for (text, format) in [
            ("net.svg", Format::Svg),
            ("/tmp/a.b/NET.SVG", Format::Svg),
            ("net.dot", Format::Dot),
            ("net.gv", Format::Dot),
            ("net.json", Format::Json),
        ] {
            assert_eq!(text.parse(), Ok(Drawing::File(text.into(), format)));
        }
        assert_eq!("-".parse(), Ok(Drawing::Print));
    }

    #[test]
    fn unknown_extensions_are_refused_with_the_known_ones() {
        for text in ["net.png", "net", "", ".svg", "svg", "net.svg.gz", "--"] {
            let sentence = text.parse::<Drawing>().unwrap_err();
            assert!(
                sentence.contains("expected FILE.svg, FILE.dot or FILE.json"),
                "{sentence}"
            );
        }
    }
}
