"""The leaderboard: tasks x methods x strengths x seeds, with scores, controls and verification."""
