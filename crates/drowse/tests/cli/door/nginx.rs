//! nginx as a worker, with HTTP and TLS, and curl as its client.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::super::text;
use super::super::up::running::{Folder, free_port};

/// A worker that is an nginx.
pub(super) struct Nginx {
    /// Where it answers HTTP.
    pub(super) http: u16,
    /// Where it answers TLS.
    pub(super) tls: u16,
    certificate: PathBuf,
}

impl Nginx {
    /// Lists it in the configuration, with more keys of a worker, in which `{tls}` is its port for TLS.
    pub(super) fn list(folder: &Folder, id: &str, host: &str, more: &str) -> Self {
        let own = |name: &str| folder.file(&format!("{id}.{name}"));
        let nginx = Self { http: free_port(), tls: free_port(), certificate: own("cert.pem") };
        let key = own("key.pem");
        certify(host, &nginx.certificate, &key);
        fs::create_dir(own("root")).expect("the folder is ours");
        fs::write(own("root").join("index.html"), format!("hello from {id}\n")).expect("the folder is ours");
        let Self { http, tls, certificate } = &nginx;
        let (root, temporary) = (own("root"), own("tmp"));
        fs::create_dir(&temporary).expect("the folder is ours");
        let [root, temporary, certificate, key, pid] =
            [&root, &temporary, certificate, &key, &own("pid")].map(|path| path.display().to_string());
        let text = format!(
            "daemon off;\nmaster_process off;\npid {pid};\nerror_log stderr;\nevents {{}}\nhttp {{\n\
             access_log off;\nclient_body_temp_path {temporary};\nproxy_temp_path {temporary};\n\
             fastcgi_temp_path {temporary};\nuwsgi_temp_path {temporary};\nscgi_temp_path {temporary};\n\
             server {{\nlisten 127.0.0.1:{http};\nlisten 127.0.0.1:{tls} ssl;\nssl_certificate {certificate};\n\
             ssl_certificate_key {key};\nroot {root};\n\
             location = /headers {{ return 200 \"$http_host|$http_x_forwarded_for|$http_x_forwarded_proto\"; }}\n\
             }}\n}}\n"
        );
        fs::write(own("conf"), text).expect("the folder is ours");
        let conf = own("conf");
        folder.append(&format!(
            "[[worker]]\nid = \"{id}\"\ndriver = \"process\"\n\
             command = [\"/usr/sbin/nginx\", \"-e\", \"stderr\", \"-c\", \"{}\"]\n\
             target = \"127.0.0.1:{http}\"\n{}\n",
            conf.display(),
            more.replace("{tls}", &tls.to_string())
        ));
        nginx
    }

    /// Asks a host at a port of ours over TLS.
    pub(super) fn https(&self, host: &str, port: u16, path: &str) -> Output {
        curl(&[
            "--cacert",
            &self.certificate.display().to_string(),
            "--resolve",
            &format!("{host}:{port}:127.0.0.1"),
            &format!("https://{host}:{port}{path}"),
        ])
    }
}

/// Makes a certificate that signs itself.
fn certify(host: &str, certificate: &std::path::Path, key: &std::path::Path) {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", &format!("/CN={host}"), "-addext", &format!("subjectAltName=DNS:{host}")])
        .arg("-out")
        .arg(certificate)
        .arg("-keyout")
        .arg(key)
        .output()
        .expect("openssl is installed: apt-get install openssl");
    assert!(made.status.success(), "{}", text(&made.stderr));
}

/// Runs curl, which says nothing but what it got and what went wrong.
pub(super) fn curl(args: &[&str]) -> Output {
    Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "60", "--noproxy", "*"])
        .args(args)
        .output()
        .expect("curl is installed: apt-get install curl")
}
