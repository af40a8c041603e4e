alter table hooks.providers
  add column signing_secret         bytea,
  add column retired_signing_secret bytea,
  add column retired_until          timestamptz(3),
  add column rotated_at             timestamptz(3),
  add column last_secret            text check (last_secret in ('current', 'previous')),
  add column last_secret_at         timestamptz(3),
  add column expected_interval_s    integer check (expected_interval_s > 0),
  add column rejection_burst        integer check (rejection_burst > 0),
  add column watched_since          timestamptz(3);
comment on column hooks.providers.signing_secret is 'Secret of a generic sender that signs, encrypted with GATEHOUSE_SECRET_KEY; bound to the name of its row.';
comment on column hooks.providers.retired_signing_secret is 'The signing secret before the last rotation, encrypted like the present one.';
comment on column hooks.providers.retired_hash is 'SHA-256 of the token before the last rotation.';
comment on column hooks.providers.retired_until is 'The retired token or signing secret is accepted until then; null: it stopped at the rotation. Afterwards it only explains refusals.';
comment on column hooks.providers.last_secret is 'Which secret the newest verified delivery was sent with, as of last_secret_at; kept to the minute while it does not change.';
comment on column hooks.providers.expected_interval_s is 'The alarm "silent": without an event for so many seconds; null: off.';
comment on column hooks.providers.rejection_burst is 'The alarm "burst": so many deliveries with a wrong secret within five minutes; null: off.';
comment on column hooks.providers.watched_since is 'When the sender was enabled or its interval was set last: silence is counted from then on at the earliest.';

create table hooks.refusals (
  provider text        not null,
  minute   timestamptz not null,
  refused  integer     not null,
  primary key (provider, minute)
) with (fillfactor = 50);
comment on table hooks.refusals is 'Deliveries refused for their signature or token, per provider and minute of the last two days: what the alarm "burst" counts.';
