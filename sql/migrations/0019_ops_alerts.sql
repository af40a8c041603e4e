create table ops.alert_texts (
  alert_id   bigint         not null references ops.alerts (id) on delete cascade,
  content    text           collate "C" not null,
  title      text           not null,
  payload    text           not null,
  count      integer        not null default 1,
  first_seen timestamptz(3) not null,
  last_seen  timestamptz(3) not null,
  primary key (alert_id, content)
);
comment on table ops.alert_texts is 'What the deliveries of an alert said: each text is kept, so that no delivery overwrites another.';
comment on column ops.alert_texts.content is 'Hash of the text without its times: texts that differ in times alone are one, and the newest is kept.';
comment on column ops.alert_texts.payload is 'The newest delivery of this text, without the key that authorised it.';

alter table ops.alerts
  add column content       text,
  add column tier          smallint       not null default 1,
  add column holder        text           not null default '',
  add column machine       text           not null default '',
  add column reading_since timestamptz(3) not null default now();
update ops.alerts
   set content = 'sha256:' || encode(sha256(convert_to(payload, 'UTF8')), 'hex'), reading_since = last_seen;
insert into ops.alert_texts (alert_id, content, title, payload, count, first_seen, last_seen)
select id, content, title, payload, count, first_seen, last_seen
  from ops.alerts;
alter table ops.alerts
  alter column content set not null,
  drop column title,
  drop column payload;
comment on column ops.alerts.content is 'The text of the newest delivery.';
comment on column ops.alerts.tier is 'The tier that the newest delivery asks for.';
comment on column ops.alerts.holder is 'The process of Gatehouse that reads the newest delivery, as in ops.sessions.';
comment on column ops.alerts.machine is 'Where that process is, as in ops.sessions.';
comment on column ops.alerts.reading_since is 'When the process began to read it.';
comment on column ops.alerts.problem is 'Why there is no brief of the newest delivery, or that its sender hung up.';
create index alerts_being_read on ops.alerts (id) where outcome = 'received';

create table ops.brief_costs (
  day      date             primary key,
  cost_usd double precision not null
);
comment on table ops.brief_costs is 'What a model cost that wrote briefs of alerts, by day (UTC): it counts against the budget of the day.';

alter table ops.settings
  add column brief_holder  text,
  add column brief_machine text,
  add column brief_until   timestamptz(3);
comment on column ops.settings.brief_holder is 'The process that has a model write a brief: one at a time, over all instances. Null when none does.';
comment on column ops.settings.brief_until is 'When the process gives up: afterwards another one may begin.';

alter table ops.check_states
  add column told_event bigint;
comment on column ops.check_states.told_event is 'The event whose notice told that the check fails; null when its end is told, or its beginning was not.';
