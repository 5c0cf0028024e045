//! Requests that make no sense: each is answered, and none breaks anything.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::net::TcpStream;

use super::client::Client;
use super::contract::check_whatever_was_asked;
use super::requests;
use super::served::Served;

/// Requests; each is one connection's next one.
const REQUESTS: usize = 3_000;

#[tokio::test]
async fn whatever_somebody_sends_is_answered_and_is_nobodys_fault_here() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let post = super::served::id(&site.says(&ada, "hello").await);
    let known = [ada.id.clone(), post];
    let tokens = [format!("Bearer {}", ada.token), format!("Bearer {}", site.app_token())];
    let mut rng = StdRng::seed_from_u64(7);
    for n in 0..REQUESTS {
        let request = requests::draw(&mut rng, &known, &tokens);
        let headers: Vec<_> = request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let stream = TcpStream::connect(site.address()).await.unwrap();
        let mut client = Client::checked(stream, check_whatever_was_asked);
        let answer = client.send(request.method, &request.path, &headers, &request.body).await;
        assert!(answer.status < 500, "request {n}: {request:?}: {}", answer.text());
    }
    assert_eq!(site.guest("/api/v1/accounts/lookup?acct=ada").await.status, 200);
    site.end().await;
}
