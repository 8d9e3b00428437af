"""From rows to parameters: estimators, selection of terms, uncertainty, payloads and drive gains."""
