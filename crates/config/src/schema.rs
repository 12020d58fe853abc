//! The JSON Schema of the configuration file, derived from the command line's description.

use crate::CommandLine;
use crate::option::{Kind, PROGRAM, PROGRAMS, RunOption, all};
use serde_json::{Map, Value, json};

/// Returns the schema of the subcommand's file, for editors and other tools. `title` describes the file.
pub fn schema(line: &CommandLine, title: &str) -> Value {
    let run = line.subcommand();
    let options = all(line, &run);
    let mut properties = Map::new();
    let mut programs = Map::new();
    for option in &options {
        match option.program {
            None => {
                properties.insert(option.key().to_owned(), property(line, option));
            }
            Some(program) => {
                let table = programs.entry(program).or_insert_with(|| table(Map::new()));
                table["properties"][option.key()] = property(line, option);
            }
        }
    }
    let mut of_programs = table(programs);
    of_programs["description"] = json!("The settings of programs.");
    properties.insert(PROGRAM.into(), of_programs);
    let mut schema = table(properties);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema
}

/// Returns the schema of a table without other keys.
fn table(properties: Map<String, Value>) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn property(line: &CommandLine, option: &RunOption<'_>) -> Value {
    let text = match option.words() {
        words if words.is_empty() => json!({ "type": "string" }),
        words => json!({ "type": "string", "enum": words }),
    };
    let mut property = match option.kind {
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::FlagOrText => json!({ "type": ["boolean", "string"] }),
        Kind::Number => json!({ "type": "integer", "minimum": 0 }),
        Kind::Text => text,
        Kind::List if option.name == PROGRAMS => json!({
            "type": "array",
            "items": { "enum": line.programs },
            "uniqueItems": true,
        }),
        Kind::List => json!({
            "anyOf": [text.clone(), { "type": "array", "items": text }],
        }),
    };
    property["description"] = json!(option.help());
    property
}
