-- A payload of the usual size stays in its row: a chunk table and its index cost an eighth of an insert.
alter table hooks.events set (toast_tuple_target = 8160);
