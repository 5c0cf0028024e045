//! TLS to the servers: whom we trust, and who we are. Certificates end, and are made anew, often once a day: whoever
//! connects goes by the files as they are then.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tideline_model::error::{Error, Result};

/// The files that a `rediss://` connection needs; all optional, system certificates serve otherwise.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    /// PEM file with the certificates to trust.
    pub ca: Option<PathBuf>,
    /// PEM file with our own certificate, for servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// PEM file with the key of `certificate`.
    pub key: Option<PathBuf>,
}

/// Stamps of the three files: when each was written, and its length.
type FileStamps = [Option<(SystemTime, u64)>; 3];

/// TLS by some files, read anew once one of them is another.
pub(super) struct ServerTrust {
    files: TlsFiles,
    read: Mutex<(FileStamps, Arc<ClientConfig>)>,
}

impl ServerTrust {
    pub(super) fn new(files: &TlsFiles) -> Result<Self> {
        // First: what is written meanwhile is read the next time.
        let stamps = files.stamps();
        Ok(Self { files: files.clone(), read: Mutex::new((stamps, load(files)?)) })
    }

    /// TLS as the files have it now. While they can't be read, or don't belong together, it stays as it was: whoever
    /// writes them writes one after the other.
    pub(super) fn now(&self) -> Arc<ClientConfig> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = self.files.stamps();
        if stamps != read.0 {
            match load(&self.files) {
                Ok(config) => *read = (stamps, config),
                Err(error) => tracing::warn!(%error, "connections go on with the certificates of before"),
            }
        }
        read.1.clone()
    }
}

impl TlsFiles {
    fn stamps(&self) -> FileStamps {
        let stamp = |path: &Option<PathBuf>| {
            let found = path.as_ref()?.metadata().ok()?;
            Some((found.modified().ok()?, found.len()))
        };
        [&self.ca, &self.certificate, &self.key].map(stamp)
    }
}

fn load(files: &TlsFiles) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let wrong = |e: rustls::Error| Error::misconfigured(format!("TLS: {e}"));
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(wrong)?;
    let builder = builder.with_root_certificates(roots(files)?);
    let config = match (&files.certificate, &files.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let unreadable = |e| Error::misconfigured(format!("TLS file {}: {e}", key.display()));
            let key = PrivateKeyDer::from_pem_file(key).map_err(unreadable)?;
            builder.with_client_auth_cert(certificates(certificate)?, key).map_err(wrong)?
        }
        _ => {
            return Err(Error::invalid("TLS: a client certificate needs its key, and a key its certificate"));
        }
    };
    Ok(Arc::new(config))
}

fn roots(files: &TlsFiles) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    match &files.ca {
        Some(path) => {
            for certificate in certificates(path)? {
                let unfit = |e| Error::misconfigured(format!("TLS file {}: {e}", path.display()));
                roots.add(certificate).map_err(unfit)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(Error::misconfigured("TLS: no certificate to trust; name a file with the cluster's CA"));
    }
    Ok(roots)
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>> {
    let unreadable = |e| Error::misconfigured(format!("TLS file {}: {e}", path.display()));
    CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_written_anew_are_read_anew_once_they_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.pem");
        let write = |text: &str| std::fs::write(&ca, text).unwrap();
        let made = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert.pem();
        write(&made("one.example"));
        let tls = ServerTrust::new(&TlsFiles { ca: Some(ca.clone()), ..TlsFiles::default() }).unwrap();
        let first = tls.now();
        assert!(Arc::ptr_eq(&first, &tls.now()));
        write("half a cert");
        assert!(Arc::ptr_eq(&first, &tls.now()), "what can't be read changes nothing");
        // Of another length, whatever the clock of files can tell apart.
        write(&made("another-one-with-a-longer-name.example"));
        let second = tls.now();
        assert!(!Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&second, &tls.now()));
        std::fs::remove_file(&ca).unwrap();
        assert!(Arc::ptr_eq(&second, &tls.now()));
    }
}
