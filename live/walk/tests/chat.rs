//! The accounts of the chat: every message once, in order, in its room.

use proptest::prelude::*;
use warmq_bench::chat::{LEAST_SIZE, Ledger, Message, Surprise};

fn message(room: u32, user: u32, sequence: u32) -> Message {
    Message {
        room,
        user,
        sequence,
        sent_ns: 1,
    }
}

proptest! {
    #[test]
    fn a_message_is_read_as_it_was_written(
        (room, user, sequence, sent_ns) in any::<(u32, u32, u32, u64)>(),
        size in LEAST_SIZE..200,
    ) {
        let message = Message { room, user, sequence, sent_ns };
        let mut bytes = vec![0; size];
        message.write(&mut bytes);
        prop_assert_eq!(Message::read(&bytes), Some(message));
        prop_assert_eq!(Message::read(&bytes[..LEAST_SIZE - 1]), None);
    }

    /// However the users' messages are shuffled into one another.
    #[test]
    fn all_messages_in_the_order_of_each_user_leave_nothing_to_come(
        users in 1..6_u32,
        messages in 1..20_u32,
        turns in prop::collection::vec(any::<prop::sample::Index>(), 120),
    ) {
        let mut ledger = Ledger::new(7, users, messages);
        let mut sent = vec![0; users as usize];
        let mut turns = turns.into_iter().cycle();
        while ledger.left() > 0 {
            let open: Vec<u32> = (0..users).filter(|it| sent[*it as usize] < messages).collect();
            let user = open[turns.next().unwrap().index(open.len())];
            ledger.receive(&message(7, user, sent[user as usize])).unwrap();
            sent[user as usize] += 1;
        }
        prop_assert!(sent.iter().all(|it| *it == messages));
        for user in 0..users {
            prop_assert!(ledger.receive(&message(7, user, messages)).is_err());
        }
    }

    #[test]
    fn a_message_that_is_lost_doubled_or_strange_is_noticed_and_not_counted(
        received in 0..5_u32,
        came in 0..10_u32,
    ) {
        prop_assume!(came != received);
        let mut ledger = Ledger::new(1, 2, 5);
        (0..received).for_each(|it| ledger.receive(&message(1, 0, it)).unwrap());
        let before = ledger.left();
        let surprise = Surprise::Sequence { user: 0, expected: received, came };
        prop_assert_eq!(ledger.receive(&message(1, 0, came)), Err(surprise));
        prop_assert_eq!(ledger.receive(&message(2, 0, received)), Err(Surprise::Room(2)));
        prop_assert_eq!(ledger.receive(&message(1, 2, 0)), Err(Surprise::User(2)));
        prop_assert_eq!(ledger.left(), before);
    }
}
