//! Certificates and keys from files.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tideline::{Error, Result};
use tokio_rustls::TlsAcceptor;

/// Reads a chain of certificates, the server's own first, and its key: PEM files.
///
/// # Errors
///
/// [`Invalid`](tideline::ErrorKind::Invalid): a file can't be read or holds no such thing, or the key is another
/// certificate's. The message names the file.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor> {
    let refused = |file: &Path, what: &str, why: &dyn std::fmt::Display| {
        Error::invalid(format!("{}: no {what} can be read in it: {why}", file.display()))
    };
    let of_certificate = |why| refused(certificate, "certificate", &why);
    let chain = CertificateDer::pem_file_iter(certificate).map_err(of_certificate)?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(of_certificate)?;
    if chain.is_empty() {
        return Err(refused(certificate, "certificate", &"there is none"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|why| refused(key, "key", &why))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|e| {
            let (certificate, key) = (certificate.display(), key.display());
            Error::invalid(format!("{certificate} and {key} make no TLS together: {e}"))
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
