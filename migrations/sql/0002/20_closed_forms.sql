create schema memory_v1;
comment on schema memory_v1 is
    'The read models: what a memory holds, in words. Columns are only ever added; a change of meaning is a new schema.';

create function memoryos.heat_now(heat double precision, heat_at timestamptz, half_life_days double precision, at timestamptz)
returns double precision language sql immutable
return heat * power(0.5, greatest(extract(epoch from at - heat_at), 0)::double precision / (86400.0 * half_life_days));
comment on function memoryos.heat_now is 'EMA heat at a moment: it halves every half-life since it was last written.';

create function memoryos.weight_now(w0 double precision, strength_days double precision, reinforced_at timestamptz, at timestamptz)
returns double precision language sql immutable
return w0 * exp(-greatest(extract(epoch from at - reinforced_at), 0)::double precision / (86400.0 * strength_days));
comment on function memoryos.weight_now is 'Forgetting weight at a moment: w0 * exp(-age / strength).';

create function memoryos.segment_heat_now(visits integer, interactions integer, visited_at timestamptz, tau_hours double precision, at timestamptz)
returns double precision language sql immutable
return visits + interactions
    + exp(-greatest(extract(epoch from at - visited_at), 0)::double precision / (3600.0 * tau_hours));
comment on function memoryos.segment_heat_now is 'Linear segment heat at a moment: visits + pages + recency.';
