-- The health of credentials, and which of them sessions stay with.

-- name: put_credential_health
-- In the place of the last state.
INSERT INTO credential_health (provider, profile, state_json) VALUES (?, ?, ?)
ON CONFLICT (provider, profile) DO UPDATE SET state_json = excluded.state_json;

-- name: select_credential_health
-- All of them: there are as many as the settings ever named.
SELECT provider, profile, state_json FROM credential_health;

-- name: put_credential_pin
-- Only of a session that is there, so that none outlives its session.
INSERT INTO credential_pins (session_id, provider, profile)
SELECT s.session_id, :provider, :profile FROM sessions AS s WHERE s.session_id = :session_id
ON CONFLICT (session_id, provider) DO UPDATE SET profile = excluded.profile;

-- name: select_credential_pin
-- What a session stays with, of one provider.
SELECT profile FROM credential_pins WHERE session_id = ? AND provider = ?;

-- name: delete_credential_pins
-- Of a session that is reset or deleted.
DELETE FROM credential_pins WHERE session_id = ?;
