use super::*;

pub(super) const EXAMPLE: &str = r#"
[sync]
schedule = "0 */15 * * * *"
timezone = "Asia/Shanghai"
[limits]
read_timeout = "5m"
max_text_bytes = "16MiB"
reads_in_flight = 8
relist_interval = 0
[index]
heap_bytes = "200MiB"
threads = 1
[http]
listen = "127.0.0.1:7878"
allowed_hosts = ["search.example:7878"]
allowed_origins = ["https://chat.example"]
[socket]
mode = "0660"
group = "bots"
allow_uids = [1000]
[servers.handbook]
files = "../data/handbook"
[servers.docs]
command = "npx"
args = ["-y", "@acme/docs-server", "--key=${DOCS_TOKEN}"]
env = { DOCS_TOKEN = "${DOCS_TOKEN}", MODE = "${MODE:-fast}" }
inherit_env = ["HTTPS_PROXY", "NODE_EXTRA_CA_CERTS"]
[servers.wiki]
url = "https://wiki.example/mcp"
headers = { Authorization = "Bearer ${WIKI_TOKEN}" }
schedule = "0 0 3 * * *"
include = ["wiki://pages/**"]
exclude = []
mime_types = ["text/*"]
exclude_mime_types = ["text/csv"]
protocol = "legacy"
subscribe = ["wiki://pages/eng/**"]
max_subscriptions = 10
trust = ["ttl", "last_modified"]
[[servers.wiki.templates]]
uri = "wiki://pages/{space}/{+path}"
values = { space = ["eng", "ops"] }
[servers."团队 文档"]
command = "./server"
cwd = "work"
enabled = false
[scopes.support-bot]
servers = ["handbook", "wiki"]
include = ["**"]
exclude = ["wiki://pages/hr/**"]
mime_types = ["text/*", "application/pdf"]
pins = ["handbook:///tone.md"]
max_tokens = 4000
token = "${BOT_TOKEN}"
"#;

#[test]
fn the_whole_schema() {
    let folder = Folder::with(&[("conf/config.toml", EXAMPLE), ("data/handbook/a.md", "")]);
    let env = [("DOCS_TOKEN", "docs-secret"), ("WIKI_TOKEN", "wiki-secret"), ("BOT_TOKEN", "abc")];
    let config = folder.load(&["conf/config.toml"], &env).unwrap();
    let conf = folder.path("conf");

    assert_eq!(config.sync.timezone.as_deref(), Some("Asia/Shanghai"));
    assert_eq!(config.limits.read_timeout, Duration::from_secs(300));
    assert_eq!(config.limits.max_text_bytes, 16 << 20);
    assert_eq!(config.limits.reads_in_flight, 8);
    assert_eq!(config.limits.relist_interval, Duration::ZERO);
    assert_eq!(config.limits.list_timeout, Limits::default().list_timeout);
    assert_eq!(config.index, IndexConfig { heap_bytes: 200 << 20, threads: 1 });
    assert_eq!(config.http.listen.as_deref(), Some("127.0.0.1:7878"));
    let socket = SocketConfig { mode: 0o660, group: Some("bots".into()), allow_uids: vec![1000] };
    assert_eq!(config.socket, socket);

    let handbook = server(&config, "handbook");
    assert_eq!(handbook.transport, Transport::Files { root: folder.path("data/handbook") });
    assert_eq!(handbook.origin, format!("{}:21", conf.join("config.toml").display()));

    let Transport::Stdio { command, args, env, inherit_env, cwd } =
        &server(&config, "docs").transport
    else {
        panic!("not stdio")
    };
    assert_eq!(command, "npx");
    assert_eq!(args.iter().map(Secret::expose).collect::<Vec<_>>()[2], "--key=docs-secret");
    assert_eq!(format!("{args:?}"), "[-y, @acme/docs-server, --key=***]");
    assert_eq!(env["DOCS_TOKEN"].expose(), "docs-secret");
    assert_eq!(env["MODE"].expose(), "fast");
    assert_eq!(inherit_env, &["HTTPS_PROXY", "NODE_EXTRA_CA_CERTS"]);
    assert_eq!(cwd, &conf);

    let wiki = server(&config, "wiki");
    let Transport::Http { url, headers, unix_socket: None } = &wiki.transport else {
        panic!("not http")
    };
    assert_eq!(url, "https://wiki.example/mcp");
    assert_eq!(headers["Authorization"].expose(), "Bearer wiki-secret");
    let values = BTreeMap::from([("space".to_owned(), vec!["eng".into(), "ops".into()])]);
    let follow = Follow {
        schedule: Some("0 0 3 * * *".into()),
        include: vec!["wiki://pages/**".into()],
        exclude: vec![],
        mime_types: MimePolicy { allow: vec!["text/*".into()], deny: vec!["text/csv".into()] },
        protocol: ProtocolChoice::Legacy,
        templates: vec![TemplateConfig { uri: "wiki://pages/{space}/{+path}".into(), values }],
        subscribe: vec!["wiki://pages/eng/**".into()],
        max_subscriptions: 10,
        trust: Trust { last_modified: true, ttl: true },
    };
    assert_eq!(wiki.follow, follow);

    let team = server(&config, "团队 文档");
    assert_eq!(state(team), "disabled: switched off by `enabled = false`");
    let Transport::Stdio { command, cwd, .. } = &team.transport else { panic!("not stdio") };
    assert_eq!(Path::new(command), conf.join("server"));
    assert_eq!(cwd, &conf.join("work"));

    let scope = &config.scopes["support-bot"];
    assert_eq!(
        scope.servers.iter().map(ServerName::as_str).collect::<Vec<_>>(),
        ["handbook", "wiki"]
    );
    assert_eq!(scope.max_tokens, Some(4000));
    // SHA-256 of "abc", from FIPS 180-2.
    let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(scope.token_sha256.as_deref(), Some(hash));

    let shown = format!("{config:?}");
    assert!(!shown.contains("docs-secret") && !shown.contains("wiki-secret"), "{shown}");
    assert_eq!(config.masker.mask("docs-secret, wiki-secret"), "***, ***");
    assert_eq!(config.warnings, Vec::<String>::new());
}

#[test]
fn an_empty_config_is_the_default() {
    let config = own("", &[]).unwrap();
    let wanted = Config {
        files: config.files.clone(),
        watched: config.watched.clone(),
        ..Config::default()
    };
    assert_eq!(config, wanted);
    assert_eq!(Config::load(&[], &|_| None).unwrap(), Config::default());
}

#[test]
fn every_error_with_its_place() {
    for (text, wanted) in [
        (
            "[servers.a]\ncomand = \"x\"",
            "config.toml:2:1: unknown key `comand` in [servers.a]; did you mean `command`?",
        ),
        (
            "[server.a]\nurl = \"x\"",
            "config.toml:1:2: unknown key `server` at the top; did you mean `servers`?",
        ),
        (
            "[sync]\nread_timeout = 3",
            "config.toml:2:1: unknown key `read_timeout` in [sync]; it belongs in [limits]",
        ),
        (
            "[limits]\nread_timout = 3",
            "config.toml:2:1: unknown key `read_timout` in [limits]; did you mean `read_timeout`?",
        ),
        (
            "[limits]\nread_timeout = \"soon\"",
            "config.toml:2:16: `read_timeout`: must be a duration such as \"30s\", \"5m\", \"250ms\", or a number of seconds",
        ),
        ("[limits]\nread_timeout = 0", "config.toml:2:16: `read_timeout` must be longer than zero"),
        (
            "[limits]\nmax_text_bytes = \"x\"",
            "config.toml:2:18: `max_text_bytes`: must be a size such as \"16MiB\", \"500kB\", or a number of bytes",
        ),
        (
            "[limits]\nreads_in_flight = 0",
            "config.toml:2:19: `reads_in_flight`: must be from 1 to 4294967295",
        ),
        (
            "[limits]\nmin_free_disk_percent = 100",
            "config.toml:2:25: `min_free_disk_percent`: must be from 0 to 99",
        ),
        (
            "[sync]\nschedule = \"*/5 * * * *\"",
            "config.toml:2:12: `schedule`: \"*/5 * * * *\" has five fields; put the seconds first, as in \"0 */5 * * * *\"",
        ),
        (
            "[sync]\nschedule = \"0 0 0 30 2 *\"",
            "config.toml:2:12: `schedule`: \"0 0 0 30 2 *\" never comes",
        ),
        (
            "[sync]\ntimezone = \"Asia/Shanghay\"",
            "config.toml:2:12: `timezone`: there is no time zone \"Asia/Shanghay\"; did you mean \"Asia/Shanghai\"?",
        ),
        (
            "[socket]\nmode = \"0777\"",
            "config.toml:2:8: `mode`: \"0777\" must be \"0600\" (the owner only) or \"0660\" (a group too)",
        ),
        (
            "[http]\nlisten = \"7878\"",
            "config.toml:2:10: `listen`: \"7878\" isn't an address to listen on, such as \"127.0.0.1:7878\"",
        ),
        (
            "[http]\nlisten = \"0.0.0.0:7878\"",
            "config.toml:2:10: listening on \"0.0.0.0:7878\" lets other machines in, and no scope has a token; give a scope a token with `resdex token new SCOPE`, or listen on 127.0.0.1",
        ),
        (
            "[http]\nallowed_origins = [\"https://a.example/x\"]",
            "config.toml:2:20: `allowed_origins`: \"https://a.example/x\" isn't an origin such as \"https://chat.example\" (no path)",
        ),
        (
            "[servers.a]\nurl = \"ftp://x/\"",
            "config.toml:2:7: `url`: its URL has the scheme \"ftp\", which isn't HTTP; take http://…, https://… or unix:///path/to/socket#/path",
        ),
        (
            "[servers.a]\ncommand = \"x\"\nurl = \"http://x/\"",
            "config.toml:3:1: has both `command` and `url` in [servers.a]; a server has one of them",
        ),
        (
            "[servers.a]\nurl = \"http://x/\"\nargs = []",
            "config.toml:3:1: a server with `url` has no `args`",
        ),
        (
            "[servers.a]\ncommand = [\"x\"]",
            "config.toml:2:11: `command` must be a string, not a list",
        ),
        (
            "[servers.a]\ncommand = \"x\"\nargs = [\"y\", 3]",
            "config.toml:3:14: `args` must hold strings only, not a whole number",
        ),
        (
            "[servers.a]\ncommand = \"x\"\ninclude = [\"a{b\"]",
            "config.toml:3:12: `include`: \"a{b\" isn't a glob: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
        ),
        (
            "[servers.a]\ncommand = \"x\"\nprotocol = \"new\"",
            "config.toml:3:12: `protocol`: must be \"auto\", \"legacy\" or \"modern\", not \"new\"",
        ),
        (
            "[servers.\"a/b\"]\ncommand = \"x\"",
            "config.toml:1:10: a server's name has no '/' in it",
        ),
        (
            "[servers.\"\"]\ncommand = \"x\"",
            "config.toml:1:10: a server's name has 1 to 64 characters, this one has 0",
        ),
        (
            "[servers.9a]\nfiles = \"x\"",
            "config.toml:1:10: the name of a `files` server is the scheme of its URIs, and \"9a\" can't be one: a letter first, then letters, digits, `-`, `_`, `.`",
        ),
        (
            "[servers.a]\nschedule = \"0 0 0 * * *\"",
            "config.toml:1:10: the server a has no `command`, `url` or `files`, and no client file has it; give it one of them, or add the client file that has it with --config",
        ),
        (
            "[servers.a]\nurl = \"http://x/\"\nheaders = { \"a b\" = \"c\" }",
            "config.toml:3:13: \"a b\" isn't the name of a header",
        ),
        (
            "[servers.wiki]\nurl = \"http://x/\"\n[scopes.s]\nservers = [\"wikki\"]",
            "config.toml:4:12: the scope s names a server that isn't there: \"wikki\"; did you mean `wiki`?",
        ),
        (
            "[scopes.s]\nmime_types = [\"text\"]",
            "config.toml:2:15: `mime_types`: \"text\" isn't a MIME type such as \"text/markdown\" or \"text/*\"",
        ),
        (
            "[scopes.s]\ntoken_sha256 = \"abc\"",
            "config.toml:2:16: `token_sha256`: must be the 64 hexadecimal digits that `resdex token new SCOPE` prints",
        ),
        (
            "[scopes.s]\ntoken = \"${NO_SUCH}\"",
            "config.toml:2:9: the token of the scope s: the variable NO_SUCH isn't set; set NO_SUCH in the environment of `resdex serve`",
        ),
        (
            "[scopes.s]\nmax_tokens = -1",
            "config.toml:2:14: `max_tokens`: must be from 1 to 4294967295",
        ),
        (
            "[servers.a]\n[[servers.a.templates]]\nvalues = {}",
            "config.toml:2:1: a template needs its `uri`",
        ),
        (
            "[servers.a]\n[[servers.a.templates]]\nuri = \"a://{b\"",
            "config.toml:3:7: `uri`: \"a://{b\" isn't a URI template (RFC 6570): \"{b\" is not closed",
        ),
        (
            "[servers.a]\n[[servers.a.templates]]\nuri = \"a://{b}\"\nvalues = { c = [] }",
            "config.toml:3:7: `uri`: \"a://{b}\" has no variable \"c\", but values are given for it",
        ),
        (
            "[servers.a]\n[[servers.a.templates]]\nuri = \"a://b\"",
            "config.toml:3:7: `uri`: \"a://b\" has no variable, so it's no template",
        ),
        (
            "[servers.a]\n[[servers.a.templates]]\nuri = \"\"",
            "config.toml:3:7: `uri`: a template's URI can't be empty",
        ),
        (
            "[servers.a]\ncommand = \"x\"\nexclude = [\"**.md\"]",
            "config.toml:3:12: `exclude`: \"**.md\" has a `**` that doesn't stand alone between slashes",
        ),
        ("servers = 3", "config.toml:1:11: `servers` must be a table, not a whole number"),
        ("[servers\n", "config.toml:1:9: isn't valid TOML: unclosed table, expected `]`"),
        ("a = 1\na = 2", "config.toml:2:1: isn't valid TOML: duplicate key"),
    ] {
        let folder = Folder::with(&[("config.toml", text)]);
        let errors = folder.errors(&["config.toml"], &[]);
        assert!(
            errors.lines().any(|line| line == wanted),
            "{text}\n  gives\n{errors}\n  not\n{wanted}"
        );
    }
}

#[test]
fn one_run_names_every_error() {
    let text =
        "[sync]\nschedule = 3\nfoo = 1\n[servers.a]\ncomand = 1\n[limits]\nmax_pages = \"x\"";
    let errors = own(text, &[]).unwrap_err().0;
    let lines: Vec<_> = errors.iter().filter_map(|error| error.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 7]);
}

#[test]
fn columns_count_characters() {
    let folder = Folder::with(&[("config.toml", "[servers]\n'团队' = { comand = 1 }")]);
    let errors = folder.errors(&["config.toml"], &[]);
    assert!(
        errors.contains("config.toml:2:10: unknown key `comand` in [servers.团队]"),
        "{errors}"
    );
}

#[test]
fn a_missing_file_and_a_binary_one() {
    let folder = Folder::with(&[]);
    std::fs::write(folder.path("bin.toml"), [0xff, 0xfe, 0]).unwrap();
    let errors = folder.errors(&["none.toml", "bin.toml"], &[]);
    assert!(errors.contains("none.toml: can't be read"), "{errors}");
    assert!(errors.contains("bin.toml: isn't UTF-8"), "{errors}");
}

#[test]
fn references() {
    let folder = Folder::with(&[("secret.txt", "from-file\n"), ("home/key", "from-home")]);
    let home = folder.path("home").display().to_string();
    let env = [("SET", "value"), ("EMPTY", ""), ("HOME", home.as_str()), ("BRACED", "${SET}")];
    for (text, wanted) in [
        ("plain", Ok("plain")),
        ("a ${SET} b ${SET}", Ok("a value b value")),
        ("${EMPTY}", Ok("")),
        ("${UNSET:-else}", Ok("else")),
        ("${UNSET:-}", Ok("")),
        ("${EMPTY:-else}", Ok("else")),
        ("${UNSET:-a:b}", Ok("a:b")),
        ("${file:secret.txt}", Ok("from-file")),
        ("${file:~/key}", Ok("from-home")),
        // A value is a value, whatever it looks like.
        ("${BRACED}", Ok("${SET}")),
        ("$SET", Ok("$SET")),
        ("cost: 5$", Ok("cost: 5$")),
        ("${", Ok("${")),
        ("退款 ${SET}", Ok("退款 value")),
        (
            "${UNSET}",
            Err(
                "env.V: the variable UNSET isn't set; set UNSET in the environment of `resdex serve`",
            ),
        ),
        ("${env:SET}", Err("env.V: ${env:SET} can't be expanded")),
        ("${input:key}", Err("env.V: ${input:key} can't be expanded")),
        ("${}", Err("env.V: ${} can't be expanded")),
        ("${A:-${B}}", Err("env.V: ${A:-${B} can't be expanded")),
        ("${file:none.txt}", Err("env.V: the file ")),
    ] {
        let toml = format!("[servers.a]\ncommand = \"x\"\nenv = {{ V = '{text}' }}");
        folder.write("config.toml", &toml);
        let config = folder.load(&["config.toml"], &env).unwrap();
        let a = server(&config, "a");
        let Transport::Stdio { env, .. } = &a.transport else { panic!("not stdio") };
        match wanted {
            Ok(wanted) => {
                assert_eq!((state(a).as_str(), env["V"].expose()), ("ready", wanted), "{text}")
            }
            Err(wanted) => {
                assert!(
                    state(a).starts_with(&format!("needs_config: {wanted}")),
                    "{text}: {}",
                    state(a)
                );
                assert_eq!(env["V"].expose(), "", "the literal is never sent");
            }
        }
    }
}

#[test]
fn schemes_of_folders() {
    for (name, wanted) in [
        ("handbook", Some("handbook")),
        ("My_Docs", Some("my-docs")),
        ("a+b.c-9", Some("a+b.c-9")),
        ("my docs", None),
        ("文档", None),
        ("-a", None),
        ("HTTP", None),
        ("resdex", None),
    ] {
        assert_eq!(scheme_of(name).ok().as_deref(), wanted, "{name}");
    }
}

#[test]
fn a_variable_that_leaves_nothing() {
    for (toml, wanted) in [
        ("files = \"${EMPTY}\"", "needs_config: `files` is empty; correct it in its file"),
        ("command = \"${EMPTY}\"", "needs_config: `command` is empty; correct it in its file"),
        (
            "url = \"${EMPTY}\"",
            "needs_config: its URL isn't one: relative URL without a base; take http://…, https://… or unix:///path/to/socket#/path",
        ),
    ] {
        let config = own(&format!("[servers.a]\n{toml}"), &[("EMPTY", "")]).unwrap();
        assert_eq!(state(server(&config, "a")), wanted);
    }
}

#[test]
fn unix_sockets_and_own_addresses() {
    let text = r#"
[http]
listen = "127.0.0.1:7878"
[servers.sock]
url = "unix:///run/x.sock#/mcp"
[servers.self]
url = "http://localhost:7878/mcp"
[servers.self2]
url = "unix:///run/resdex/sock#/mcp"
[servers.agent]
command = "resdex"
args = ["mcp"]
"#;
    let mut config = own(text, &[]).unwrap();
    config.disable_own_addresses(None, Some(Path::new("/run/resdex/sock")));
    let sock = server(&config, "sock");
    assert_eq!(state(sock), "ready");
    let wanted = Transport::Http {
        url: "http://localhost/mcp".into(),
        headers: BTreeMap::new(),
        unix_socket: Some("/run/x.sock".into()),
    };
    assert_eq!(sock.transport, wanted);
    for name in ["self", "self2", "agent"] {
        assert!(state(server(&config, name)).starts_with("disabled: it"), "{name}");
    }
}

#[test]
fn a_non_loopback_address_with_a_token() {
    let hash = "ab".repeat(32);
    let text =
        format!("[http]\nlisten = \"0.0.0.0:7878\"\n[scopes.bot]\ntoken_sha256 = \"{hash}\"");
    assert_eq!(own(&text, &[]).unwrap().http.listen.as_deref(), Some("0.0.0.0:7878"));
    let config = own("", &[]).unwrap();
    assert_eq!(config.check_listen("[::1]:80"), Ok(()));
    assert!(config.check_listen("[::]:80").is_err());
}

#[test]
fn urls_that_are_never_asked() {
    for (url, wanted) in [
        ("http://169.254.169.254/mcp", false),
        ("http://[fe80::1]/mcp", false),
        ("http://[::ffff:169.254.1.1]/mcp", false),
        ("http://metadata.google.internal/", false),
        ("http://100.100.100.200/", false),
        ("http://10.0.0.1/mcp", true),
        ("https://wiki.example/mcp", true),
    ] {
        assert_eq!(own(&format!("[servers.a]\nurl = \"{url}\""), &[]).is_ok(), wanted, "{url}");
        // The same from a variable, which is known only later.
        let config = own("[servers.a]\nurl = \"${URL}\"", &[("URL", url)]).unwrap();
        assert_eq!(state(server(&config, "a")) == "ready", wanted, "{url}");
        assert!(!format!("{config:?}").contains("/mcp"), "a URL's path may be a secret");
    }
}

#[test]
fn warnings() {
    use std::os::unix::fs::PermissionsExt;
    let text = r#"
[servers.a]
command = "x"
args = ["--api-key=literal"]
env = { A_TOKEN = "literal", MODE = "plain", B_KEY = "${B}" }
[servers.b]
url = "http://wiki.example/mcp"
headers = { Authorization = "Bearer ${B}" }
[servers.c]
url = "http://127.0.0.1:1/mcp"
headers = { Authorization = "Bearer literal" }
[servers.d]
files = "nowhere"
"#;
    let folder = Folder::with(&[("config.toml", text)]);
    let env = [("B", "bbbb")];
    let plain_http = "config.toml:6: the server b gets a secret header over plain http; anyone on the way can read it";
    let warnings = |mode: u32| -> Vec<String> {
        std::fs::set_permissions(folder.path("config.toml"), std::fs::Permissions::from_mode(mode))
            .unwrap();
        let config = folder.load(&["config.toml"], &env).unwrap();
        let prefix = format!("{}/", folder.0.path().display());
        config.warnings.iter().map(|warning| warning.replace(&prefix, "")).collect()
    };
    let closed = warnings(0o600);
    assert_eq!(closed[0], plain_http);
    assert!(closed[1].starts_with("config.toml:12: the folder of the server d isn't there: "));
    assert_eq!(closed.len(), 2, "{closed:?}");
    let open = warnings(0o644);
    assert!(
        open[0].starts_with(
            "config.toml:2: the server a holds a secret in args, env.A_TOKEN, and other users"
        ),
        "{open:?}"
    );
    assert_eq!(open[1], plain_http);
    assert!(
        open[2].starts_with("config.toml:9: the server c holds a secret in headers.Authorization"),
        "{open:?}"
    );
}

#[test]
fn several_files() {
    let a = "[servers.x]\ncommand = \"npx\"\nargs = [\"y\"]\n[limits]\nmax_pages = 3";
    for (b, wanted) in [
        (a, Ok(1)),
        ("[servers.z]\ncommand = \"npx\"", Ok(2)),
        (
            "[servers.x]\ncommand = \"npx\"",
            Err(
                "b/c.toml:1: the server x is also in a/c.toml:1, and not the same; rename one, or take one out",
            ),
        ),
        (
            "[limits]\nmax_pages = 4",
            Err(
                "b/c.toml:2:1: `limits.max_pages` is set differently in a/c.toml:5; set it in one of the files only",
            ),
        ),
        ("[servers.x]\nprotocol = \"modern\"", Ok(1)),
    ] {
        let folder = Folder::with(&[("a/c.toml", a), ("b/c.toml", b)]);
        match wanted {
            Ok(count) => {
                assert_eq!(
                    folder.load(&["a/c.toml", "b/c.toml"], &[]).unwrap().servers.len(),
                    count
                );
            }
            Err(wanted) => assert_eq!(folder.errors(&["a/c.toml", "b/c.toml"], &[]), wanted),
        }
    }
}

#[test]
fn where_the_config_is() {
    for (env, wanted) in [
        (&[("RESDEX_CONFIG", "/a.toml"), ("HOME", "/h")][..], Some("/a.toml")),
        (&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")], Some("/x/resdex/config.toml")),
        (&[("XDG_CONFIG_HOME", "rel"), ("HOME", "/h")], Some("/h/.config/resdex/config.toml")),
        (&[("HOME", "/h")], Some("/h/.config/resdex/config.toml")),
        (&[], None),
    ] {
        assert_eq!(default_file(&env_of(env)), wanted.map(PathBuf::from));
    }
}

#[test]
fn a_file_of_errors_is_told_by_its_first() {
    // To find the places of all would take the square of the length.
    let folder = Folder::with(&[
        ("noise.toml", &"\\ud83d".repeat(100_000)),
        ("keys.toml", &(0..20_000).map(|key| format!("key{key} = 1\n")).collect::<String>()),
    ]);
    for (name, line) in [("noise.toml", 1), ("keys.toml", 1)] {
        let errors = folder.load(&[name], &[]).unwrap_err().0;
        assert_eq!(errors.len(), 50, "{name}");
        assert_eq!(errors[0].line, Some(line), "{name}");
    }
}
