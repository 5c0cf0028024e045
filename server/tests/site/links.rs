//! Links in letters, where something goes wrong on the way: whoever meets an error comes again.

use super::browser::Browser;
use super::faults::{BrokenKey, TOKENS, fill, keys};
use super::letters::{confirmed, log_in, status, with};
use super::postbox::Postbox;
use super::served::{PASSWORD, Served};

/// Asks for a link for a forgotten password; gives it.
async fn forgotten(site: &Served, postbox: &Postbox, name: &str, letters: usize) -> String {
    let (mut browser, _) = Browser::open(site, "/auth/password").await;
    let email = format!("{name}@tide.example");
    browser.submit("ask", &[("email", &email)]).await;
    postbox.link(&email, letters).await
}

/// Sets a password by a link; the status, and the page.
async fn set(site: &Served, link: &str, password: &str) -> (u16, String) {
    let (mut browser, page) = Browser::open(site, link).await;
    if page.status != 200 {
        return (page.status, browser.page);
    }
    let told = browser.submit("set", &[("password", password)]).await;
    (told.status, told.text())
}

/// The password was another one, the old tokens went on, the link was gone, and the answer said "try again": of that
/// came "too old".
#[tokio::test]
async fn where_a_session_can_not_be_ended_the_link_is_good_until_all_are() {
    let postbox = Postbox::open().await;
    let site = with(&postbox).await;
    let ada = confirmed(&site, &postbox, "ada").await;
    let before = keys(&site.cluster, TOKENS).await;
    let thief = log_in(&site, "ada", PASSWORD).await.unwrap();
    let mut new = keys(&site.cluster, TOKENS).await;
    new.retain(|token| !before.contains(token));
    let link = forgotten(&site, &postbox, "ada", 2).await;
    let broken = BrokenKey::new(&site.cluster, new.pop().unwrap()).await;
    for _ in 0..2 {
        let (mut browser, _) = Browser::open(&site, &link).await;
        browser.takes_anything();
        let told = browser.submit("set", &[("password", "another horse")]).await;
        let page = told.text();
        assert!(told.status == 500 && page.contains("may have been carried out"), "{}: {page}", told.status);
    }
    // It is bound to that password.
    assert_eq!(set(&site, &link, "a third horse").await.0, 404);
    // Nobody who logs in with the new one loses that session to what failed before.
    broken.mend().await;
    let (told, page) = set(&site, &link, "another horse").await;
    assert!(told == 200 && page.contains("is another one now"), "{told}: {page}");
    for token in [&thief, &ada.token] {
        assert_eq!(status(&site, token).await, 401);
    }
    assert_eq!(set(&site, &link, "another horse").await.0, 404);
    assert!(log_in(&site, "ada", PASSWORD).await.is_none());
    assert!(log_in(&site, "ada", "another horse").await.is_some());
    site.end().await;
}

/// Whoever was refused because there was no room had lost its link.
#[tokio::test]
async fn a_link_that_could_do_nothing_is_not_used_up() {
    let postbox = Postbox::open().await;
    let site = with(&postbox).await;
    for name in ["ada", "bea"] {
        confirmed(&site, &postbox, name).await;
    }
    let forgotten = forgotten(&site, &postbox, "ada", 2).await;
    let (mut bea, _) = Browser::open(&site, "/auth/account").await;
    bea.submit("log_in", &[("username", "bea"), ("password", PASSWORD)]).await;
    bea.submit("address", &[("email", "bea@ebb.example"), ("password", PASSWORD)]).await;
    let changes = postbox.link("bea@ebb.example", 1).await;
    let (mut browser, _) = Browser::open(&site, &changes).await;
    let form = browser.page.clone();
    fill(&site.cluster, true).await;
    let ((told, page), change) =
        tokio::join!(set(&site, &forgotten, "another horse"), browser.submit("confirm", &[]));
    for (status, page) in [(told, page), (change.status, change.text())] {
        assert!(status == 503 && !page.contains("may have been"), "{status}: {page}");
    }
    fill(&site.cluster, false).await;
    let (told, page) = set(&site, &forgotten, "another horse").await;
    assert!(told == 200 && page.contains("is another one now"), "{told}: {page}");
    browser.page.clone_from(&form);
    let told = browser.submit("confirm", &[]).await.text();
    assert!(told.contains("the address of @bea now"), "{told}");
    // Once.
    browser.page = form;
    assert_eq!(browser.submit("confirm", &[]).await.status, 404);
    site.end().await;
}

#[tokio::test]
async fn of_several_who_have_a_link_at_once_one_chooses_the_password() {
    let postbox = Postbox::open().await;
    let site = with(&postbox).await;
    confirmed(&site, &postbox, "ada").await;
    let link = forgotten(&site, &postbox, "ada", 2).await;
    let passwords = (0..8).map(|n| format!("horse of rider {n}")).collect::<Vec<_>>();
    let tries = passwords.iter().map(|password| set(&site, &link, password));
    let told = futures::future::join_all(tries).await;
    let chosen: Vec<&String> =
        passwords.iter().zip(&told).filter(|(_, told)| told.0 == 200).map(|(password, _)| password).collect();
    assert_eq!(chosen.len(), 1, "{told:?}");
    for password in &passwords {
        let is_it = log_in(&site, "ada", password).await.is_some();
        assert_eq!(is_it, password == chosen[0], "{password}");
    }
    site.end().await;
}
