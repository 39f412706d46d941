use super::*;

const ONE: PlaceCount = PlaceCount {
    files: 1,
    sites: 1,
    events: 1,
    forms: 1,
    arguments: 1,
};

fn user(user: u32) -> [Account; 1] {
    [Account::of_user(user)]
}

/// Takes as many as can be had.
fn take_all(places: &Places, account: u32) -> Vec<Place> {
    std::iter::from_fn(|| places.take(&user(account), ONE).ok()).collect()
}

#[test]
fn a_user_leaves_room_for_others() {
    let places = Places::default();
    let first = take_all(&places, 1);
    assert_eq!(first.len(), OF_ACCOUNT.files.min(most_files() / 2));
    let error = places.take(&user(1), ONE).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("user 1 would have"), "{text}");
    let mut others = Vec::new();
    for account in 2..8 {
        let taken = take_all(&places, account);
        assert!(!taken.is_empty(), "user {account}");
        others.push(taken);
    }
    assert!(places.take(&user(0), ONE).is_ok());
    // One of several accounts has room.
    let both = [Account::of_user(1), Account::of_user(0)];
    assert!(places.take(&both, ONE).is_ok());
}

#[test]
fn places_are_given_back_and_events_are_not() {
    let places = Places::default();
    let need = PlaceCount {
        events: 1000,
        ..ONE
    };
    for _ in 0..OF_ACCOUNT.events / 1000 {
        assert!(places.take(&user(1), need).is_ok());
    }
    let error = places.take(&user(1), need).unwrap_err();
    assert!(error.to_string().contains("events"), "{error}");
    let taken = places.taken();
    assert_eq!((taken.all.files, taken.all.sites), (0, 0));
    assert_eq!(taken.all.events, OF_ACCOUNT.events / 1000 * 1000);
}

#[test]
fn a_file_that_exceeds_a_limit_is_named_with_it() {
    let many = PlaceCount {
        sites: OF_FILE.sites + 1,
        ..ONE
    };
    let beyond = many.beyond(OF_FILE);
    assert_eq!(beyond, Some((OF_FILE.sites + 1, "sites", OF_FILE.sites)));
    assert_eq!(ONE.beyond(OF_FILE), None);
}
