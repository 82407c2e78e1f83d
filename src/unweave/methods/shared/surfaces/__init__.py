"""Known layers of kinked units, the surfaces behind them, and where these cross; asked one by one."""
