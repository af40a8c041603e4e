-- Prints the statements that set the sequences of another server to the values of this one.
select format('select setval(%L, %s);', format('%I.%I', schemaname, sequencename), last_value)
  from pg_sequences
 where last_value is not null;
