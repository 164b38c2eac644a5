"""What every service process needs: a supervised life, health endpoints, patience with the database."""
