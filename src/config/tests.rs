use super::*;
use crate::cluster::{Replicas, Seed};
use crate::settings::Acknowledge;
use std::time::Duration;

const EXAMPLE: &str = include_str!("../../deploy/tideline.toml");

/// Loads as [`Config::load`] does, with a file and variables of the test's own.
fn load(file: &str, variables: &[(&str, &str)]) -> Result<Config> {
    let mut loader = Loader::default();
    loader.take_file("t.toml", file)?;
    loader.take_variables(variables.iter().map(|(k, v)| ((*k).into(), (*v).into())));
    loader.finish()
}

fn refusal(file: &str, variables: &[(&str, &str)]) -> String {
    let refusal = load(file, variables).unwrap_err();
    assert_eq!(refusal.kind(), crate::ErrorKind::Invalid);
    refusal.to_string()
}

fn shown(config: &Config) -> String {
    format!("{config:#?}")
}

#[test]
fn the_example_mentions_every_setting_once_in_order_with_its_default() {
    let is_setting = |line: &&str| line.strip_prefix('#').is_some_and(|l| l.starts_with(char::is_alphabetic));
    let ours = EXAMPLE.split("[server]").next().unwrap();
    let mentioned: Vec<&str> = ours.lines().filter(is_setting).map(|line| &line[1..]).collect();
    let mut defaults = Config::default();
    let wanted: Vec<String> =
        fields(&mut defaults).iter().map(|f| format!("{} = {}", f.name, f.value.get())).collect();
    assert_eq!(mentioned, wanted);
}

#[test]
fn the_example_gives_the_defaults_also_with_all_of_it_uncommented() {
    let uncomment = |line: &str| match line.strip_prefix('#') {
        Some(setting) if setting.starts_with(char::is_alphabetic) => setting.to_owned(),
        _ => line.to_owned(),
    };
    let uncommented: Vec<String> = EXAMPLE.lines().map(uncomment).collect();
    let defaults = shown(&Config::default());
    assert_eq!(shown(&Config::from_toml(EXAMPLE).unwrap()), defaults);
    assert_eq!(shown(&Config::from_toml(&uncommented.join("\n")).unwrap()), defaults);
}

#[test]
fn variables_override_the_file_and_the_file_the_defaults() {
    let file = "[cluster]\nseeds = [\"redis://a\"]\nbuckets = 64\nreplicas = \"required\"\n\
                [sets]\nspread_at = 1_000\n[engine]\nvisible_within_ms = 0\ndormant_after_days = \"never\"\n";
    let variables = [
        ("TIDELINE_CLUSTER_SEEDS", "redis://b:1, redis://c,"),
        ("TIDELINE_SETS_SPREAD_AT", "auto"),
        ("TIDELINE_CLUSTER_BUCKETS", ""),
        ("TIDELINE_ENGINE_DORMANT_AFTER_DAYS", "7"),
        ("TIDELINE_ENGINE_ACKNOWLEDGE", "replicated"),
        ("TIDELINE_ENGINE_SHOWS_REPLIES_TO_STRANGERS", "true"),
        ("TIDELINE_ENGINE_TOKEN_TTL_S", "60"),
        ("TIDELINE_CLUSTER_TLS_CA", "/etc/ca.pem"),
        ("TIDELINE_REGISTRATION_MEMORY_KIB", "8"),
        // The command line's own, a service link, and another program's.
        ("TIDELINE_CLUSTER", "redis://d"),
        ("TIDELINE_CLUSTER_PORT_6379_TCP", "tcp://10.0.0.1:6379"),
        ("TIDELINE_REDIS_SERVER", "/usr/bin/redis-server"),
        ("PATH", "/bin"),
    ];
    let config = load(file, &variables).unwrap();
    let Config { store, engine, .. } = &config;
    assert_eq!(store.seeds, ["redis://b:1", "redis://c"].map(Seed::from));
    assert_eq!((store.buckets, store.sets.spread_at), (Some(64), None));
    assert_eq!(store.router.replicas, Replicas::Required);
    assert_eq!(store.router.tls.ca.as_deref(), Some("/etc/ca.pem".as_ref()));
    assert_eq!((engine.visible_within, engine.token_ttl), (Duration::ZERO, Duration::from_secs(60)));
    assert_eq!((engine.dormant_after_days, engine.acknowledge), (Some(7), Acknowledge::Replicated));
    assert!(engine.shows_replies_to_strangers);
    assert_eq!((config.registration.memory_kib, config.registration.hashes_at_once), (8, None));
}

#[test]
fn every_setting_can_be_set_by_a_variable() {
    let mut defaults = Config::default();
    for field in fields(&mut defaults) {
        let name = format!("TIDELINE_{}_{}", field.section, field.name).to_uppercase();
        let value = match field.value.get() {
            Value::List(items) => items.join(","),
            Value::Text(text) => text,
            value => value.to_string(),
        };
        let config = load("", &[(&name, &value)]).unwrap();
        assert_eq!(shown(&config), shown(&Config::default()), "{name}");
    }
}

#[test]
fn refuses_what_is_no_setting_and_tells_what_there_is() {
    let text = refusal(
        "x = 1\n\n[engin]\n[sets]\nspred_at = 3\n[engine]\nhome_posts = 400\nhome_post = 3\n",
        &[("TIDELINE_CLUSTER_SEED", "redis://a")],
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    for wanted in [
        "t.toml, line 1: `x` is no section; there are [cluster], [sets], [engine]",
        "t.toml, line 3: `engin` is no section",
        "t.toml, line 5: `spred_at` is no setting; [sets] has piece_limit, spread_at, trees_cached",
        "t.toml, line 8: `home_post` is no setting; [engine] has visible_within_ms, ",
        "environment variable TIDELINE_CLUSTER_SEED: `seed` is no setting; [cluster] has seeds, ",
    ] {
        assert!(text.contains(wanted), "{wanted}\nis missing in\n{text}");
    }
}

#[test]
fn refuses_wrong_types_and_tells_what_may_stand_there() {
    let wrong = [
        ("home_posts = \"400\"", "line 2: engine.home_posts is \"400\"; it takes a whole number"),
        ("home_posts = -1", "is a negative or a huge number; it takes a whole number"),
        ("home_posts = 5_000_000_000", "is 5000000000; it takes a whole number"),
        ("home_posts = 4.5", "is a fraction"),
        ("visible_within_ms = 1979-05-27", "is a date; it takes a whole number of milliseconds"),
        ("token_ttl_s = 9_000_000_000", "is 9000000000; it takes a whole number of seconds, up to a year"),
        ("token_ttl_s = [1]", "is a list of other things than strings; it takes a whole number of seconds"),
        ("dormant_after_days = \"nver\"", "is \"nver\"; it takes a whole number, or \"never\""),
        ("acknowledge = \"later\"", "is \"later\"; it takes \"accepted\" or \"replicated\""),
        ("shows_replies_to_strangers = \"yes\"", "is \"yes\"; it takes true or false"),
    ];
    for (line, wanted) in wrong {
        let text = refusal(&format!("[engine]\n{line}\n"), &[]);
        assert!(text.contains(wanted), "{line}: {text}");
    }
    let text = refusal("[cluster]\nprefix = 3", &[("TIDELINE_ENGINE_HOME_POSTS", "many")]);
    assert!(text.contains("cluster.prefix is 3; it takes a string"), "{text}");
    assert!(
        text.contains("environment variable TIDELINE_ENGINE_HOME_POSTS: engine.home_posts is \"many\""),
        "{text}"
    );
    let text = refusal("[engine]\nhome_posts = \n", &[]);
    assert!(text.starts_with("t.toml, line 2: this is not TOML: "), "{text}");
    let text = refusal("[engine]\nhome_posts = 20\nhome_posts = 30\n", &[]);
    assert!(text.starts_with("t.toml, line 3: this is not TOML: duplicate key"), "{text}");
}

#[test]
fn bounds_are_checked_together_whatever_set_them() {
    let file = "[engine]\nhome_posts = 400\nlease_ttl_ms = 5000\n[cluster]\nprefix = \"a{b\"\ndeadline_ms = 900\n\
                buckets = 100\n[sets]\npiece_limit = 4\n[registration]\npasses = 0\n";
    let text = refusal(file, &[("TIDELINE_ENGINE_LEASE_RENEWAL_MS", "4000")]);
    for wanted in [
        "[engine] lease_ttl must be more than twice lease_renewal",
        "lease_ttl_ms = 5000 (t.toml, line 3)",
        "lease_renewal_ms = 4000 (environment variable TIDELINE_ENGINE_LEASE_RENEWAL_MS)",
        "[cluster] deadline must be longer than response_timeout: response_timeout_ms = 1000 (the default), \
         deadline_ms = 900 (t.toml, line 6)",
        "[cluster] prefix",
        "prefix = \"a{b\" (t.toml, line 5)",
        "buckets = 100 (t.toml, line 7)",
        "[sets] piece_limit must be 16 to 128: piece_limit = 4 (t.toml, line 9)",
        "[registration] passes must be 1 to 100: passes = 0 (t.toml, line 11)",
    ] {
        assert!(text.contains(wanted), "{wanted}\nis missing in\n{text}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let refusal = Config::load(Some("/nowhere/tideline.toml".as_ref())).unwrap_err();
    assert!(refusal.to_string().contains("/nowhere/tideline.toml cannot be read"), "{refusal}");
}
