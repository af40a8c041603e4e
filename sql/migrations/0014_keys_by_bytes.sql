-- Texts in indexes are compared by their bytes, as those of links always were. By the rules of a language an index
-- depends on a library of the host, and may miss its own rows once that is upgraded: a known delivery would be stored
-- again. Bytes are also quicker to compare, and stand in the same order on every server.
alter table hooks.events
  alter column provider type text collate "C",
  alter column event_type type text collate "C",
  alter column external_id type text collate "C";
alter table hooks.activity alter column provider type text collate "C";
alter table hooks.endpoints alter column name type text collate "C";
alter table hooks.forwarders alter column name type text collate "C";
alter table hooks.providers alter column name type text collate "C";
alter table hooks.refusals alter column provider type text collate "C";
alter table hooks.rejection_totals alter column provider type text collate "C";
alter table hooks.rejections alter column provider type text collate "C";

alter table links.clicks alter column kind type text collate "C";

alter table ops.actions
  alter column service type text collate "C",
  alter column action_type type text collate "C";
alter table ops.alerts alter column fingerprint type text collate "C";
alter table ops.check_states
  alter column service type text collate "C",
  alter column name type text collate "C";
alter table ops.events
  alter column level type text collate "C",
  alter column service type text collate "C";
alter table ops.memories
  alter column service type text collate "C",
  alter column category type text collate "C";
