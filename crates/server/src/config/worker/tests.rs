use super::super::tests::{errors, errors_in_full, parse};
use super::*;

/// A worker of each driver, right and as short as it can be.
const PROCESS_WORKER: &str = "[[worker]]\nid = \"w\"\ndriver = \"process\"\ncommand = [\"true\"]\n";
const EC2_WORKER: &str = "[[worker]]\nid = \"w\"\ndriver = \"ec2\"\nregion = \"us-east-1\"\ninstance_id = \"i-0123456789abcdef0\"\n";

fn driver(text: &str) -> Driver {
    parse(&format!("[[worker]]\nid = \"w\"\n{text}")).workers[0].driver.clone()
}

#[test]
fn each_driver_gets_what_it_needs() {
    let table = [
        (
            "driver = \"process\"\ncommand = [\"a\", \"b\"]\ndirectory = \"/srv\"",
            Driver::Process { command: vec!["a".into(), "b".into()], directory: Some("/srv".into()) },
        ),
        (
            "driver = \"docker\"\ncontainer = \"x\"",
            Driver::Docker { container: Container::Named("x".into()) },
        ),
        (
            "driver = \"docker\"\nlabel = \"label=a=b\"",
            Driver::Docker { container: Container::Labelled("a=b".into()) },
        ),
        (
            "driver = \"qemu\"\nkernel = \"k\"",
            Driver::Qemu {
                boot: Boot { kernel: Some("k".into()), initrd: None, append: None, image: None },
                memory: 256 << 20,
                cpus: 1,
            },
        ),
        (
            "driver = \"qemu\"\nimage = \"i\"\nmemory = \"1GiB\"\ncpus = 4",
            Driver::Qemu {
                boot: Boot { kernel: None, initrd: None, append: None, image: Some("i".into()) },
                memory: 1 << 30,
                cpus: 4,
            },
        ),
        (
            "driver = \"ec2\"\nregion = \"r\"\ninstance_id = \"i-01234567\"",
            Driver::Ec2 { instance_id: "i-01234567".into(), cml: None },
        ),
        (
            "driver = \"ec2\"\nregion = \"r\"\ninstance_id = \"i-01234567\"\ntype = \"cml\"\ncml.tls_verify = false",
            Driver::Ec2 {
                instance_id: "i-01234567".into(),
                cml: Some(CmlAccess { endpoint: None, tls: CmlTls::Unverified }),
            },
        ),
        ("driver = \"sim\"", Driver::Sim),
    ];
    for (text, expected) in table {
        assert_eq!(driver(text), expected, "{text}");
    }
}

#[test]
fn a_fingerprint_is_read_with_and_without_colons() {
    let hex = "ab".repeat(32);
    let colons = vec!["AB"; 32].join(":");
    for written in [&hex, &colons] {
        let text = format!(
            "driver = \"ec2\"\nregion = \"r\"\ninstance_id = \"i-01234567\"\ntype = \"cml\"\nendpoint = \"https://x\"\ncml.tls_fingerprint = \"sha256:{written}\""
        );
        let cml = CmlAccess { endpoint: Some("https://x".into()), tls: CmlTls::Pinned(hex.clone()) };
        assert_eq!(driver(&text), Driver::Ec2 { instance_id: "i-01234567".into(), cml: Some(cml) });
    }
}

#[test]
fn attributes_and_the_worker_layer_are_read() {
    let config = parse(&format!(
        "{PROCESS_WORKER}type = \"gpu\"\nregion = \"here\"\ngroup = \"g\"\nowner = \"o\"\ntarget = \"127.0.0.1:9001\"\nlisten = \"127.0.0.1:8001\"\nprice_per_hour = 0.34\npaused_price_per_hour = 0\npolicy.idle_timeout = \"10s\"\npolicy.signals.cpu.use = \"off\"\n[policy.group.g]\n"
    ));
    let worker = &config.workers[0];
    let attributes =
        [&worker.selectors.kind, &worker.selectors.region, &worker.selectors.group, &worker.selectors.owner];
    assert_eq!(attributes.map(Option::as_deref), [Some("gpu"), Some("here"), Some("g"), Some("o")]);
    assert_eq!(worker.ways.target, Some(Target::Address("127.0.0.1:9001".parse().unwrap())));
    assert_eq!(worker.price_per_hour, Some(Money::from_micros(340_000)));
    assert_eq!(worker.paused_price_per_hour, Some(Money::ZERO));
    assert!(worker.nature().is_routed);
    let (policy, provenance) = config.policy.resolve_for(&worker.selectors);
    assert_eq!(policy.idle_timeout, Some(std::time::Duration::from_secs(10)));
    assert_eq!(provenance[&Key::IdleTimeout].to_string(), "worker w");
    assert_eq!(provenance[&Key::Grace].to_string(), "type gpu (built-in)");
}

#[test]
fn a_worker_of_qemu_is_a_microvm() {
    let config = parse("[[worker]]\nid = \"w\"\ndriver = \"qemu\"\nimage = \"i\"");
    assert_eq!(config.workers[0].selectors.kind.as_deref(), Some("microvm"));
    let (policy, _) = config.policy.resolve_for(&config.workers[0].selectors);
    assert_eq!(policy.idle_timeout, Some(std::time::Duration::from_mins(1)));
}

#[test]
fn a_port_alone_is_enough_where_the_driver_knows_the_address() {
    let config = parse(&format!("{EC2_WORKER}target = \":22\"\nlisten = \"127.0.0.1:0\""));
    assert_eq!(config.workers[0].ways.target, Some(Target::Port(22)));
    assert_eq!(
        errors(&format!("{PROCESS_WORKER}target = \":22\"\nlisten = \"127.0.0.1:0\"")),
        [
            "f:5:10: target: expected an address and a port such as \"127.0.0.1:9001\", or of a container the port alone \
          such as \":8888\", found \":22\""
        ]
    );
}

#[test]
fn what_a_driver_misses_is_named() {
    let id = "id = \"w\"\n";
    let table = [
        (
            String::new(),
            vec![
                "f:1:1: id is missing: expected a name such as \"web\"",
                "f:1:1: driver is missing: expected \"process\", \"docker\", \"qemu\" or \"ec2\"",
            ],
        ),
        (
            "id = \"a b\"\ndriver = \"sim\"".to_owned(),
            vec![
                "f:2:6: id: expected a worker id of 1 to 128 letters, digits, '.', '_' or '-' that starts with a letter or digit, found \"a b\"",
            ],
        ),
        (
            format!("{id}driver = \"dokcer\""),
            vec![
                "f:3:10: driver: expected \"process\", \"docker\", \"qemu\" or \"ec2\", found \"dokcer\"; did you mean \"docker\"?",
            ],
        ),
        (
            format!("{id}driver = \"lambda\""),
            vec!["f:3:10: driver: expected \"process\", \"docker\", \"qemu\" or \"ec2\", found \"lambda\""],
        ),
        (
            format!("{id}driver = \"process\""),
            vec![
                "f:1:1: command is missing: expected a program and its arguments such as [\"python3\", \"-m\", \"http.server\", \"9001\"]",
            ],
        ),
        (
            format!("{id}driver = \"process\"\ncommand = \"sleep 5\""),
            vec![
                "f:4:11: command: expected a program and its arguments such as [\"sync\", \"-f\"], found \"sleep 5\"",
            ],
        ),
        (
            format!("{id}driver = \"docker\""),
            vec![
                "f:1:1: container is missing: expected the name or id of a container; or instead of it label, a label \
                 that one container has",
            ],
        ),
        (
            format!("{id}driver = \"docker\"\ncontainer = \"a\"\nlabel = \"label=x\""),
            vec!["f:5:9: label: expected either container or label, found both"],
        ),
        (
            format!("{id}driver = \"docker\"\ncontainer = \"a\"\ncommand = [\"x\"]"),
            vec!["f:5:11: command: only for the process driver, and this worker's driver is docker"],
        ),
        (format!("{id}driver = \"qemu\""), vec!["f:1:1: kernel is missing: expected the path of a kernel"]),
        (
            format!("{id}driver = \"qemu\"\nimage = \"x\"\ninitrd = \"y\"\nmemory = \"1MiB\""),
            vec![
                "f:5:10: initrd: needs kernel beside it",
                "f:6:10: memory: expected a size of at least 16MiB such as \"512MiB\", found \"1MiB\"",
            ],
        ),
        (
            format!("{id}driver = \"ec2\""),
            vec![
                "f:1:1: instance_id is missing: expected an instance id such as \"i-0123456789abcdef0\"",
                "f:1:1: region is missing: expected a name such as \"us-east-1\"",
            ],
        ),
        (
            format!("{id}driver = \"ec2\"\nregion = \"r\"\ninstance_id = \"web\""),
            vec![
                "f:5:15: instance_id: expected an instance id such as \"i-0123456789abcdef0\", found \"web\"",
            ],
        ),
        (
            format!(
                "{id}driver = \"ec2\"\nregion = \"r\"\ninstance_id = \"i-01234567\"\nendpoint = \"https://x\""
            ),
            vec!["f:6:12: endpoint: needs type = \"cml\" beside it"],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(errors(&format!("[[worker]]\n{text}")), expected, "{text}");
    }
    assert_eq!(errors("[worker]\nid = \"w\""), ["f:1:1: worker: expected [[worker]], found a table"]);
}

#[test]
fn what_is_wrong_with_any_worker_is_named() {
    let id = "id = \"w\"\n";
    let table = [
        (
            format!("{id}driver = \"sim\"\nidle_timeout = \"5m\""),
            vec!["f:4:1: idle_timeout: unknown key; did you mean \"policy.idle_timeout\"?"],
        ),
        (
            format!("{id}driver = \"sim\"\nlisten = \"127.0.0.1:1\""),
            vec!["f:4:10: listen: needs target beside it: where the worker answers"],
        ),
        (
            format!("{id}driver = \"sim\"\nprice_per_hour = -1"),
            vec!["f:4:18: price_per_hour: expected a price of at least 0 such as 0.34, found the number -1"],
        ),
        (
            format!("{id}driver = \"sim\"\npolicy = 3"),
            vec![
                "f:4:10: policy: expected policy keys such as policy.idle_timeout = \"10m\", found the number 3",
            ],
        ),
        (
            format!("{id}driver = \"sim\"\npolicy.max_runtime = 48"),
            vec!["f:4:22: max_runtime: a bare number has no unit: write \"48s\", \"48m\" or \"48h\""],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(errors(&format!("[[worker]]\n{text}")), expected, "{text}");
    }
}

#[test]
fn sleep_that_the_driver_cannot_do_is_refused_at_the_worker_layer_only() {
    let table = [
        (
            "policy.sleep = \"hibernate\"",
            PROCESS_WORKER,
            "f:5:16: sleep: the process driver cannot hibernate: expected \"freeze\" or \"stop\"",
        ),
        (
            "policy.sleep = \"freeze\"",
            EC2_WORKER,
            "f:6:16: sleep: the ec2 driver cannot freeze: expected \"stop\" or \"hibernate\"",
        ),
    ];
    for (sleep, worker, error) in table {
        assert_eq!(errors(&format!("{worker}{sleep}")), [error]);
        assert_eq!(errors(&format!("{sleep}\n{worker}")), [""; 0], "at the global layer it becomes stop");
    }
}

#[test]
fn what_two_workers_cannot_share_is_refused_with_both_places() {
    let two = |first: &str, second: &str| {
        let worker = |id: &str, more: &str| format!("[[worker]]\nid = \"{id}\"\n{more}\n");
        worker("a", first) + &worker("b", second)
    };
    let routed = |listen: &str| format!("driver = \"sim\"\ntarget = \"127.0.0.1:1\"\nlisten = \"{listen}\"");
    let text = format!("{PROCESS_WORKER}{PROCESS_WORKER}");
    assert_eq!(
        errors_in_full(&text),
        "f:6:6: id: \"w\" is already used by worker w\n  6 | id = \"w\"\n    |      ^^^\nf:2:6: first used here\n  2 | id = \"w\"\n    |      ^^^\n"
    );
    assert_eq!(
        errors(&two(&routed("127.0.0.1:80"), &routed("127.0.0.1:80"))),
        ["f:10:10: listen: 127.0.0.1:80 is already used by worker a"]
    );
    assert_eq!(
        errors(&two(&routed("0.0.0.0:80"), &routed("127.0.0.1:80"))),
        ["f:10:10: listen: 127.0.0.1:80 is already used by worker a"]
    );
    for (one, other) in
        [("127.0.0.1:80", "127.0.0.1:81"), ("127.0.0.1:80", "127.0.0.2:80"), ("127.0.0.1:0", "127.0.0.1:0")]
    {
        assert_eq!(errors(&two(&routed(one), &routed(other))), [""; 0], "{one} {other}");
    }
    assert_eq!(
        errors(&two(&routed("127.0.0.1:7070"), "driver = \"sim\"")),
        ["f:5:10: listen: 127.0.0.1:7070 is already used by the server itself"]
    );
    let docker = "driver = \"docker\"\ncontainer = \"c\"";
    assert_eq!(errors(&two(docker, docker)), ["f:8:13: container: \"c\" is already used by worker a"]);
    let ec2 = |region: &str| format!("driver = \"ec2\"\ninstance_id = \"i-01234567\"\nregion = \"{region}\"");
    assert_eq!(
        errors(&two(&ec2("r"), &ec2("r"))),
        ["f:9:15: instance_id: \"i-01234567\" is already used by worker a"]
    );
    assert_eq!(errors(&two(&ec2("r"), &ec2("s"))), [""; 0]);
}

#[test]
fn a_target_behind_a_door_of_ours_is_refused() {
    let worker = |id: &str, listen: &str, target: &str| {
        format!(
            "[[worker]]\nid = \"{id}\"\ndriver = \"process\"\ncommand = [\"x\"]\nlisten = \"{listen}\"\ntarget = \"{target}\"\n"
        )
    };
    let loops =
        worker("a", "127.0.0.1:8001", "127.0.0.1:8002") + &worker("b", "127.0.0.1:8002", "127.0.0.1:8001");
    assert_eq!(
        errors(&loops),
        [
            "f:6:10: target: 127.0.0.1:8002 leads to 127.0.0.1:8002, where worker b listens",
            "f:12:10: target: 127.0.0.1:8001 leads to 127.0.0.1:8001, where worker a listens",
        ]
    );
    for (listen, target, leads) in [
        ("127.0.0.1:8001", "127.0.0.1:8001", true),
        ("0.0.0.0:8001", "127.0.0.1:8001", true),
        ("[::]:8001", "127.0.0.1:8001", true),
        ("127.0.0.1:8001", "0.0.0.0:8001", true),
        ("127.0.0.1:8001", "[::ffff:127.0.0.1]:8001", true),
        ("127.0.0.1:8001", "127.0.0.1:7070", true),
        // Another machine, as far as can be known.
        ("0.0.0.0:8001", "192.0.2.7:8001", false),
        ("127.0.0.1:8001", "127.0.0.2:8001", false),
        ("127.0.0.1:8001", "127.0.0.1:8002", false),
    ] {
        assert_eq!(!errors(&worker("a", listen, target)).is_empty(), leads, "{listen} {target}");
    }
}

#[test]
fn names_lead_to_one_worker_each() {
    let router = "[router]\ntls = [\"127.0.0.1:8443\"]\n";
    let worker = |id: &str, more: &str| format!("[[worker]]\nid = \"{id}\"\ndriver = \"sim\"\n{more}\n");
    let config = parse(&format!(
        "{router}{}{}",
        worker("a", "target = \"127.0.0.1:1\"\nsni = [\"A.example.org\", \"*.a.example.org\"]"),
        worker("b", "tls_target = \"127.0.0.1:2\"\nsni = \"b.example.org\"")
    ));
    let names: Vec<String> = config.workers[0].ways.sni.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a.example.org", "*.a.example.org"]);
    assert!(config.workers[1].nature().is_routed);
    assert_eq!(config.workers[1].ways.tls_target, Some(Target::Address("127.0.0.1:2".parse().unwrap())));

    let expected =
        "expected a host name such as \"lab.example.org\" or \"*.lab.example.org\", or a list of them";
    let table = [
        (
            "sni = \"b.example.org\"",
            "f:6:7: sni: needs target beside it: where the worker answers".to_owned(),
        ),
        ("sni = []\ntarget = \"127.0.0.1:1\"", format!("f:6:7: sni: {expected}, found a list")),
        ("sni = [\"a b\"]\ntarget = \"127.0.0.1:1\"", format!("f:6:7: sni: {expected}, found \"a b\"")),
        ("tls_target = \"127.0.0.1:1\"", "f:6:14: tls_target: needs sni beside it".to_owned()),
        (
            "sni = [\"x\", \"X\"]\ntarget = \"127.0.0.1:1\"",
            "f:6:7: sni: \"x\" is already used by worker b".to_owned(),
        ),
        (
            "listen = \"127.0.0.1:8443\"\ntarget = \"127.0.0.1:1\"",
            "f:6:10: listen: 127.0.0.1:8443 is already used by the router's shared port".to_owned(),
        ),
    ];
    for (text, error) in table {
        assert_eq!(errors(&format!("{router}{}", worker("b", text))), [error], "{text}");
    }
    assert_eq!(
        errors(&worker("b", "sni = \"x\"\ntarget = \"127.0.0.1:1\"")),
        ["f:4:7: sni: needs a port that leads by name: [router] tls = [\"127.0.0.1:8443\"]"]
    );
}
