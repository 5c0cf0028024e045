//! One configuration: a TOML file, environment variables over it, and bounds that are checked together.
//!
//! `fields` lists every setting once, `value` says what may stand there. Defaults are those of the structs that are
//! set, spelled nowhere else; a field that such a struct gets and the list lacks is a compile error.
//! deploy/tideline.toml shows all of them. What is built on the engine has sections of its own in the same file
//! ([`FurtherSettings`]); where only the engine's are read, those are left alone.

mod fields;
#[cfg(test)]
mod tests;
mod value;

use std::collections::HashMap;
use std::path::Path;

use toml::de::DeTable;

pub use self::fields::{Field, Section};
use self::fields::{SECTIONS, SECTIONS_OF_OTHERS, fields};
pub use self::value::{Setting, Value, WordChoice};
use crate::bucket::Buckets;
use crate::charter::TenantSettings;
use crate::engine::EngineBuilder;
use crate::error::{Error, Result};
use crate::keys::check_prefix;
use crate::registration::RegistrationSettings;
use crate::settings::EngineSettings;
use crate::store::StoreOptions;

/// Prefix of environment variables' names.
const VARIABLE: &str = "TIDELINE_";

/// Everything that an [`Engine`](crate::Engine) is set up with.
///
/// ```no_run
/// # async fn example() -> tideline::Result<()> {
/// use tideline::{Config, Engine};
///
/// let config = Config::load(Some("tideline.toml".as_ref()))?;
/// let engine = Engine::builder().config(config).start().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Which cluster, how to talk to it, and how sharded sets behave: the sections `[cluster]` and `[sets]`.
    pub store: StoreOptions,
    /// How the engine behaves: the sections `[engine]` and `[modes]`.
    pub engine: EngineSettings,
    /// What passwords cost, for [`Registration::new`](crate::registration::Registration::new): the section
    /// `[registration]`.
    pub registration: RegistrationSettings,
}

impl EngineBuilder {
    /// Everything that a configuration says: the store and how the engine behaves. What is said after this call
    /// overrides it.
    pub fn config(self, config: Config) -> Self {
        self.store(config.store).settings(config.engine)
    }
}

impl Config {
    /// The defaults; over them the file, if there is one; over it the environment variables of this process, named
    /// `TIDELINE_<SECTION>_<FIELD>`.
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid) if the file cannot be read or isn't TOML, on settings that
    /// don't exist (in the file, or as such variables), on wrong types, and on values that don't fit together. The
    /// message tells where each of them stands, and what may stand there.
    pub fn load(path: Option<&Path>) -> Result<Self> {
        Loader::default().load(path)
    }

    /// Loads the settings, and those of what is built on the engine.
    #[doc(hidden)]
    pub fn load_with(path: Option<&Path>, further: &mut dyn FurtherSettings) -> Result<Self> {
        Loader { further: Some(further), ..Loader::default() }.load(path)
    }

    /// Reads the settings from texts: a file's, and variables.
    #[doc(hidden)]
    pub fn of_texts(
        file: &str,
        variables: &[(&str, &str)],
        further: &mut dyn FurtherSettings,
    ) -> Result<Self> {
        let mut loader = Loader { further: Some(further), ..Loader::default() };
        loader.take_file("configuration", file)?;
        loader.take_variables(variables.iter().map(|(k, v)| ((*k).into(), (*v).into())));
        loader.finish()
    }

    /// The settings in it that are the tenant's, as soon as it has decided so.
    pub fn tenant_settings(&self) -> TenantSettings {
        TenantSettings::of(&self.engine, self.store.router.replicas)
    }

    /// The defaults, and over them what this text says; environment variables are left alone.
    pub fn from_toml(text: &str) -> Result<Self> {
        let mut loader = Loader::default();
        loader.take_file("configuration", text)?;
        loader.finish()
    }
}

/// Settings of what is built on the engine, in sections of their own.
#[doc(hidden)]
pub trait FurtherSettings {
    /// The sections, with a place for each setting.
    fn sections(&mut self) -> Vec<Section<'_>>;

    /// Finds settings that don't fit together: sections, and a rule of each, which names the settings.
    fn broken_rules(&self) -> Vec<(&'static str, String)>;
}

/// A configuration that is being put together.
#[derive(Default)]
struct Loader<'f> {
    config: Config,
    /// Of what is built on the engine, if that is read.
    further: Option<&'f mut dyn FurtherSettings>,
    /// Where a setting that isn't the default was set.
    origins: HashMap<String, String>,
    mistakes: Vec<String>,
}

impl Loader<'_> {
    fn load(mut self, path: Option<&Path>) -> Result<Config> {
        if let Some(path) = path {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|e| Error::invalid(format!("the configuration {name} cannot be read: {e}")))?;
            self.take_file(&name, &text)?;
        }
        let variables = std::env::vars_os();
        self.take_variables(
            variables.filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))),
        );
        self.finish()
    }

    fn take_file(&mut self, name: &str, text: &str) -> Result<()> {
        let line = |at: usize| text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        let table = DeTable::parse(text).map_err(|e| {
            let line = e.span().map_or(1, |span| line(span.start));
            Error::invalid(format!("{name}, line {line}: this is not TOML: {}", e.message()))
        })?;
        for (section, settings) in table.get_ref() {
            let place = format!("{name}, line {}", line(section.span().start));
            let section = section.get_ref().as_ref();
            if SECTIONS_OF_OTHERS.contains(&section) && !self.has(section) {
                continue;
            }
            let Some(settings) = settings.get_ref().as_table().filter(|_| self.has(section)) else {
                self.mistakes.push(format!("{place}: `{section}` is no section; there are {}", sections()));
                continue;
            };
            for (setting, value) in settings {
                let place = format!("{name}, line {}", line(setting.span().start));
                self.set(section, setting.get_ref(), &Value::of_toml(value.get_ref()), place);
            }
        }
        Ok(())
    }

    fn take_variables(&mut self, variables: impl Iterator<Item = (String, String)>) {
        // So stands in a compose file what nobody has filled in.
        for (variable, value) in variables.filter(|(_, value)| !value.is_empty()) {
            let Some(name) = variable.strip_prefix(VARIABLE).map(str::to_lowercase) else { continue };
            let of = |section: &&str| name.strip_prefix(*section)?.strip_prefix('_').map(str::to_owned);
            let Some((section, setting)) = self.sections().iter().find_map(|s| Some((*s, of(s)?))) else {
                continue;
            };
            if !is_service_link(&setting) {
                let place = format!("environment variable {variable}");
                self.set(section, &setting, &Value::Typed(value), place);
            }
        }
    }

    /// The sections that are read.
    fn sections(&mut self) -> Vec<&'static str> {
        let further = self.further.as_mut().map(|further| further.sections()).unwrap_or_default();
        SECTIONS.into_iter().chain(further.iter().map(|section| section.name)).collect()
    }

    fn has(&mut self, section: &str) -> bool {
        self.sections().contains(&section)
    }

    fn set(&mut self, section: &str, setting: &str, value: &Value, place: String) {
        let mut of_section: Vec<Field<'_>> = all_fields(&mut self.config, &mut self.further)
            .filter(|field| field.section == section)
            .collect();
        let Some(field) = of_section.iter_mut().find(|field| field.name == setting) else {
            let names: Vec<&str> = of_section.iter().map(|field| field.name).collect();
            let names = names.join(", ");
            self.mistakes.push(format!("{place}: `{setting}` is no setting; [{section}] has {names}"));
            return;
        };
        if field.value.set(value) {
            self.origins.insert(field.path(), place);
        } else {
            let allowed = field.value.allowed();
            let is = if field.value.is_secret() { "something else".to_owned() } else { value.to_string() };
            self.mistakes.push(format!("{place}: {} is {is}; it takes {allowed}", field.path()));
        }
    }

    fn finish(mut self) -> Result<Config> {
        if !self.mistakes.is_empty() {
            return Err(Error::invalid(self.mistakes.join("\n")));
        }
        let Config { store, engine, registration } = &self.config;
        let broken = [
            ("cluster", store.router.broken_rule().map(str::to_owned)),
            ("cluster", check_prefix(&store.prefix).err().map(|e| format!("prefix: {e}"))),
            ("cluster", store.buckets.and_then(|n| Buckets::new(n).err()).map(|e| format!("buckets: {e}"))),
            ("sets", store.sets.broken_rule().map(str::to_owned)),
            ("engine", engine.broken_rule().map(str::to_owned)),
            ("modes", engine.modes.broken_rule().map(str::to_owned)),
            ("registration", registration.broken_rule().map(str::to_owned)),
        ];
        let of_others = self.further.as_ref().map(|further| further.broken_rules()).unwrap_or_default();
        let of_ours = broken.into_iter().filter_map(|(section, rule)| Some((section, rule?)));
        let all: Vec<(&str, String)> = of_ours.chain(of_others).collect();
        let broken: Vec<String> =
            all.into_iter().map(|(section, rule)| self.explained(section, &rule)).collect();
        if broken.is_empty() { Ok(self.config) } else { Err(Error::invalid(broken.join("\n"))) }
    }

    /// A rule that is broken, with the values of the settings that it names and where they stand.
    fn explained(&mut self, section: &str, rule: &str) -> String {
        let words: Vec<&str> = rule.split(|c: char| !c.is_ascii_lowercase() && c != '_').collect();
        let is_named = |name: &str| {
            words
                .iter()
                .any(|word| name.strip_prefix(word).is_some_and(|r| r.is_empty() || r.starts_with('_')))
        };
        let named = all_fields(&mut self.config, &mut self.further)
            .filter(|f| f.section == section && is_named(f.name));
        let values: Vec<String> = named
            .map(|field| {
                let origin = self.origins.get(&field.path()).map_or("the default", |origin| origin.as_str());
                format!("{} = {} ({origin})", field.name, field.value.get())
            })
            .collect();
        format!("[{section}] {rule}: {}", values.join(", "))
    }
}

/// All settings that are read.
fn all_fields<'a>(
    config: &'a mut Config,
    further: &'a mut Option<&mut dyn FurtherSettings>,
) -> impl Iterator<Item = Field<'a>> {
    let further = further.as_mut().map(|further| further.sections()).unwrap_or_default();
    fields(config).into_iter().chain(further.into_iter().flat_map(|section| section.fields))
}

fn sections() -> String {
    let all = SECTIONS.into_iter().chain(SECTIONS_OF_OTHERS);
    all.map(|section| format!("[{section}]")).collect::<Vec<_>>().join(", ")
}

/// Whether Kubernetes sets this in every container, for a service that is named like a section: not meant for us.
fn is_service_link(setting: &str) -> bool {
    setting.starts_with("service_") || setting == "port" || setting.starts_with("port_")
}
