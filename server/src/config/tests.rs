use super::*;

const EXAMPLE: &str = include_str!("../../../deploy/tideline.toml");

fn load(file: &str, variables: &[(&str, &str)]) -> Result<ServerSettings> {
    let mut settings = ServerSettings::default();
    Config::of_texts(file, variables, &mut settings).map(|_| settings)
}

#[test]
fn the_example_mentions_every_setting_once_in_order_with_its_default() {
    let ours = EXAMPLE.split("[server]").nth(1).unwrap();
    let is_setting = |line: &&str| line.strip_prefix('#').is_some_and(|l| l.starts_with(char::is_alphabetic));
    let mentioned: Vec<&str> = ours.lines().filter(is_setting).map(|line| &line[1..]).collect();
    let mut defaults = ServerSettings::default();
    let fields = defaults.sections().into_iter().flat_map(|section| section.fields);
    let wanted = fields.map(|f| format!("{} = {}", f.name, f.value.get()));
    assert_eq!(mentioned, wanted.collect::<Vec<_>>());
    let uncomment =
        |line: &str| line.strip_prefix('#').filter(|_| is_setting(&line)).unwrap_or(line).to_owned();
    let uncommented: Vec<String> = format!("[server]{ours}").lines().map(uncomment).collect();
    assert_eq!(load(&uncommented.join("\n"), &[]).unwrap(), ServerSettings::default());
    assert_eq!(load(EXAMPLE, &[]).unwrap(), ServerSettings::default());
}

#[test]
fn variables_override_the_file_and_the_file_the_defaults() {
    let file = "[server]\ntitle = \"Tide\"\nlisten = [\"[::1]:80\"]\nrules = [\"Be kind, always\"]\n\
                registrations = \"approval\"\nrequest_time_s = 3\n[engine]\nhome_posts = 100\n";
    let variables = [
        ("TIDELINE_SERVER_TITLE", "Ebb"),
        ("TIDELINE_SERVER_TRUSTED_PROXIES", "10.0.0.0/8, ::1"),
        ("TIDELINE_SERVER_PASSWORD_GRANT", "false"),
        ("TIDELINE_SERVER_PUBLIC_URL", "https://tide.example:8443"),
        ("TIDELINE_SERVER_SERVICE_HOST", "10.0.0.1"),
    ];
    let settings = load(file, &variables).unwrap();
    assert_eq!((settings.title.as_str(), settings.password_grant), ("Ebb", false));
    assert_eq!(settings.listen, ["[::1]:80".parse().unwrap()]);
    assert_eq!(settings.rules, ["Be kind, always"]);
    assert_eq!(settings.registrations, Registrations::Approval);
    assert_eq!(settings.trusted_proxies.len(), 2);
    assert_eq!((settings.domain(), settings.layers().request_time.as_secs()), ("tide.example:8443", 3));
}

/// A site whose host had a capital letter refused all of its own forms: browsers write it in lower case.
#[test]
fn a_public_url_is_written_as_browsers_write_it() {
    for url in ["https://social.example", "http://localhost:3000", "https://a:80", "http://a:443"] {
        assert!(is_public_url(url), "{url}");
    }
    assert!(is_public_url("https://[2001:db8::1]:8443") && is_public_url("http://[::1]"));
    for url in [
        "https://Social.Example",
        "https://a.example:443",
        "http://a:80",
        "https://:",
        "https://",
        "https://a:",
        "https://a:0",
        "https://a:08",
        "https://a:65536",
        "https://[::1",
        "https://[2001:DB8::1]",
        "https://a:b",
        "https://::1",
        "https://a@b",
        "ftp://a",
        "HTTPS://a",
    ] {
        assert!(!is_public_url(url), "{url}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place_its_value_and_what_may_stand_there() {
    let refusal = |file: &str| load(file, &[]).unwrap_err().to_string();
    for (line, wanted) in [
        (
            "listen = [\"3000\"]",
            "line 2: server.listen is [\"3000\"]; it takes a list of addresses with ports",
        ),
        ("trusted_proxies = [\"all\"]", "server.trusted_proxies is [\"all\"]; it takes a list of networks"),
        (
            "registrations = \"on\"",
            "is \"on\"; it takes \"open\" or \"approval\" or \"invitation\" or \"closed\"",
        ),
        ("titel = \"x\"", "line 2: `titel` is no setting; [server] has listen, public_url, "),
        ("public_url = \"https://a/\"", "[server] public_url must be http:// or https:// and a host"),
        ("public_url = \"a\"", "public_url = \"a\" (configuration, line 2)"),
        ("tls_key = \"k\"", "tls_certificate and tls_key must be set both or neither"),
        ("tls_listen = [\"[::]:443\"]", "[server] tls_listen needs a tls_certificate"),
        ("listen = []", "listen or tls_listen must name an address"),
        ("requests_max = 0", "requests_max = 0 (configuration, line 2)"),
        ("[mail]\nserver = \"mx.example\"", "[mail] from must be an address where there is a server"),
        (
            "[mail]\nuser = \"x\"\nserver = \"mx\"\nfrom = \"a@b.example\"",
            "user and a password must be set both or neither: ",
        ),
    ] {
        let text = refusal(&format!("[server]\n{line}\n"));
        assert!(text.contains(wanted), "{line}: {text}");
    }
    let text = refusal("[servr]\n");
    assert!(
        text.contains(
            "there are [cluster], [sets], [engine], [modes], [limits], [registration], [server], [mail]"
        ),
        "{text}"
    );
}

#[test]
fn whoever_reads_the_engines_settings_alone_leaves_ours_alone() {
    let config = Config::from_toml("[server]\nanything = 1\n[engine]\nhome_posts = 100\n").unwrap();
    assert_eq!(config.engine.home_posts, 100);
}
